"""Other projects' drafting, built from their own releases so that our loop can verify it beside ours."""
