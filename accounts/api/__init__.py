"""REST of accounts: projects and jobs. People stand in consent, which may open their names."""
