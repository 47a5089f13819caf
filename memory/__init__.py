"""Memory: what agents remember of a person, and what a company knows.

Relies on consent (may they), accounts (who, keys, scope) and audit. Start at services and recall.
"""
