"""What happened, in order, provably. The ground floor: no imports from other apps, no content, no HTTP.

Write through `audit.services`, declare what may be written through `audit.registry`, read through
`audit.selectors`.
"""
