"""Models: getting a row's weights into a folder once, and loading them."""
