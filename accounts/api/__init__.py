"""REST of accounts: jobs. People stand in consent, which may open names; projects in memory, which knows policies."""
