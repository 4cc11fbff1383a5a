"""The project's files and their schemas: written whole or not at all, checked, hashed."""
