"""Changes of accounts: one function is one transaction's worth of change and its audit entry, `actor` keyword-only."""
