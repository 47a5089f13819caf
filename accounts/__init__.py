"""Accounts: who. Organisations, tenants, projects, members, API keys, the people remembered, and their keys.

Start at tenancy.scope (where a query may look) and keys (what may be opened). Relies on audit alone.
"""
