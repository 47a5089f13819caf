"""The composition root: settings, addresses, server entry points, the job runner and the embedded stack.

It may import every app and no app may import it.
"""
