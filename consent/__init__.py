"""Consent: may they. Purposes and notices, the ledger, the decision, and who looked.

Start at policy.decide, the only function that says yes; access.record_read turns a yes into a grant to read. Relies on
accounts and audit. Knows nothing of memory.
"""
