"""REST of consent: people, purposes, consents, the audit log."""
