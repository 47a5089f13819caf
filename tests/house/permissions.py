"""Who gets what: every address by method by actor, as a matrix. `test_every_route*.py` hold the product to it.

To add a route, add a row for each method it takes to the table of its kind (`REST`, `OPEN` or `PAGES`) and, where the
method takes more than its address, what is sent to `REQUESTS` or `FORMS`. A route without a row fails, a row without a
route too. Methods without a row are refused to everybody; HEAD is answered as GET.

Names in braces are filled in: a thing that lasts (`{memory_id}`), one made for this request alone
(`{memory_id:fresh}`, so that a deletion can succeed for each actor), a name nobody has (`{external_id:new}`).
`-` stands for a case that another row shows.
"""

import re
from dataclasses import dataclass
from typing import Any

# keyless    nobody, and everybody whose key is malformed, unknown, expired or revoked
# agent      Kit's key: what an agent may
# relay      a key that enters consents
# admin      a key with every scope
# scopeless  a key with none
# bound      a key of one project, with every scope
# stranger   Zenith's key with every scope: it finds its own lists, and of Acme nothing
REST = """
                                                              keyless agent relay admin scopeless bound stranger
GET    /v1/audit/events                                         401    403   403   200     403     200    200
GET    /v1/audit/events?subject={external_id}                   401    403   403   200     403     200    404
GET    /v1/jobs/{job_id}                                        401    200   403   200     403     200    404
GET    /v1/knowledge/documents                                  401    200   403   200     403     200    200
POST   /v1/knowledge/documents                                  401    403   403   202     403     202    202
GET    /v1/knowledge/documents/{document_id}                    401    200   403   200     403     200    404
DELETE /v1/knowledge/documents/{document_id:fresh}              401    403   403   200     403     200    404
POST   /v1/knowledge/search                                     401    200   403   200     403     200    200
GET    /v1/profile-keys                                         401    200   403   200     403     200    200
PUT    /v1/profile-keys/{key}                                   401    403   403   200     403     200    200
GET    /v1/projects                                             401    200   403   200     403     200    200
POST   /v1/projects                                             401    403   403   201     403     201    201
GET    /v1/projects/{project_id}                                401    200   403   200     403     200    404
PUT    /v1/projects/{project_id}                                401    403   403   200     403     200    404
GET    /v1/purposes                                             401    200   200   200     403     200    200
GET    /v1/subjects                                             401    200   403   200     403     200    200
GET    /v1/subjects/{external_id}                               401    200   403   200     403     200    404
PUT    /v1/subjects/{external_id}                               401    200   403   200     403     200     -
PUT    /v1/subjects/{external_id:new}                           401    201   403   201     403     201    201
GET    /v1/subjects/{external_id}/consents                      401    200   200   200     403     200    404
POST   /v1/subjects/{external_id}/consents                      401    403   201   201     403     201    404
GET    /v1/subjects/{external_id}/memories                      401    200   403   200     403     200    404
POST   /v1/subjects/{external_id}/memories                      401    201   403   201     403     201    404
GET    /v1/subjects/{external_id}/memories/{memory_id}          401    200   403   200     403     200    404
DELETE /v1/subjects/{external_id}/memories/{memory_id:fresh}    401    200   403   200     403     200    404
POST   /v1/subjects/{external_id}/portal-links                  401    403   403   201     403     201    404
GET    /v1/subjects/{external_id}/profile                       401    200   403   200     403     200    404
GET    /v1/subjects/{external_id}/profile/{key}                 401    200   403   200     403     200    404
PUT    /v1/subjects/{external_id}/profile/{key}                 401    200   403   200     403     200    404
DELETE /v1/subjects/{external_id}/profile/{key:fresh}           401    200   403   200     403     200    404
POST   /v1/subjects/{external_id}/recall                        401    200   403   200     403     200    404
"""
REQUESTS: dict[str, Any] = {
    "POST /v1/knowledge/documents": {"name": "{name:new}", "text": "Soup every day."},
    "POST /v1/knowledge/search": {"query": "soup"},
    "PUT /v1/profile-keys/{key}": {"schema": {"type": "string"}},
    "POST /v1/projects": {"name": "{name:new}"},
    "PUT /v1/projects/{project_id}": {"name": "{name:new}"},
    "PUT /v1/subjects/{external_id}": {"locale": "de"},
    "PUT /v1/subjects/{external_id:new}": {},
    "POST /v1/subjects/{external_id}/consents": {"event": "given", "purposes": ["memory.infer"], "evidence": "msg-2"},
    "POST /v1/subjects/{external_id}/memories": {"text": "Likes the window seat."},
    "POST /v1/subjects/{external_id}/portal-links": {},
    "PUT /v1/subjects/{external_id}/profile/{key}": {"value": "de"},
    "POST /v1/subjects/{external_id}/recall": {"query": "Where does Mia sit?"},
}

# Addresses that ask for no key, the same for every one of the above.
OPEN = """
                     anyone
GET     /healthz      200
GET     /docs/errors  200
GET     /v1/schema    200
OPTIONS /v1/schema    200
"""

# Pages. A 302 of somebody signed out leads to sign-in.
# nobody    a browser without anything
# owner, dev, officer, auditor  Acme's members by role
# zoe       Zenith's owner
# mia       her browser, with a visit to her page
# noa       hers; another person of the same tenant
# namesake  the visit of the person whom Zenith remembers under Mia's id
PAGES = """
                                                    nobody owner dev officer auditor zoe mia noa namesake
GET  /                                                200   200  200   200     200   200 200 200    200
GET  /docs/style                                      200   200  200   200     200   200 200 200    200
POST /preferences                                     302   302  302   302     302   302 302 302    302
GET  /accounts/login/                                 200   302  302   302     302   302 200 200    200
POST /accounts/login/                                 302   302  302   302     302   302 302 302    302
GET  /accounts/logout/                                302   200  200   200     200   200 302 302    302
POST /accounts/logout/                                302   302  302   302     302   302 302 302    302
GET  /accounts/inactive/                              200   200  200   200     200   200 200 200    200
GET  /accounts/password/                              302   200  200   200     200   200 302 302    302
POST /accounts/password/                              302   302  302   302     302   302 302 302    302
GET  /accounts/password/reset/                        200   200  200   200     200   200 200 200    200
POST /accounts/password/reset/                        302   302  302   302     302   302 302 302    302
GET  /accounts/password/reset/sent/                   200   200  200   200     200   200 200 200    200
GET  /accounts/password/reset/{uidb36}-{key}/         200   200  200   200     200   200 200 200    200
POST /accounts/password/reset/{uidb36}-{key}/         200   200  200   200     200   200 200 200    200
GET  /accounts/password/reset/done/                   200   200  200   200     200   200 200 200    200
GET  /console/                                        302   302  302   302     302   302 302 302    302
GET  /console/{tenant_id}/                            302   200  200   200     200   404 302 302    302
GET  /desk/{tenant_id}/                               302   403  403   200     200   404 302 302    302
GET  /desk/{tenant_id}/events/{event_id}/             302   403  403   200     200   404 302 302    302
GET  /privacy/                                        403   403  403   403     403   403 200 200    200
GET  /privacy/open/{link:fresh}/                      200   200  200   200     200   200 200 200    200
POST /privacy/open/{link:fresh}/                      302   302  302   302     302   302 302 302    302
POST /privacy/leave/                                  200   200  200   200     200   200 200 200    200
GET  /privacy/memories/{memory_id}/forget/            403   403  403   403     403   403 200 404    404
POST /privacy/memories/{memory_id:fresh}/forget/      403   403  403   403     403   403 302 404    404
GET  /privacy/profile/{entry_id}/forget/              403   403  403   403     403   403 200 404    404
POST /privacy/profile/{entry_id:fresh}/forget/        403   403  403   403     403   403 302 404    404
"""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")


@dataclass(frozen=True)
class Row:
    """What each actor gets for one method of one address; None: shown by another row."""

    method: str
    address: str
    expected: dict[str, int | None]

    @property
    def path(self):
        """As the URL conf has it."""
        return re.sub(r"(\{\w+):\w+\}", r"\1}", self.address.partition("?")[0])

    @property
    def shown(self):
        return {actor: status for actor, status in self.expected.items() if status is not None}

    def __str__(self):
        return f"{self.method} {self.address}"


def rows_of(table):
    """The rows as written, and for each GET its HEAD."""
    head, *lines = filter(str.strip, table.splitlines())
    for line in lines:
        method, address, *statuses = line.split()
        numbers = (None if status == "-" else int(status) for status in statuses)
        row = Row(method, address, dict(zip(head.split(), numbers, strict=True)))
        yield from (row, Row("HEAD", address, row.expected)) if method == "GET" else (row,)


def without_rows(rows, refusal_of):
    """The methods that no row names, of every address; `refusal_of(path)` is what the actors get."""
    named = {(row.method, row.path) for row in rows}
    addresses = {row.path: row.address for row in rows if ":" not in row.address} | {
        row.path: row.path for row in rows if ":" in row.address
    }
    return [
        Row(method, address, refusal_of(path))
        for path, address in sorted(addresses.items())
        for method in METHODS
        if (method, path) not in named
    ]


REST_ROWS, OPEN_ROWS, PAGE_ROWS = (list(rows_of(table)) for table in (REST, OPEN, PAGES))
