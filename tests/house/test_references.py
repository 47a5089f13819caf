"""References across tenants and people are refused by the database, and unique keys never reach across tenants."""

import json
from uuid import UUID

import pytest
from django.apps import apps
from psycopg import errors, sql
from uuid_utils.compat import uuid7

from accounts.constraints import CompositeForeignKey
from tests.house.filled import expect, fill
from tests.house.walls import Setting, enter
from tests.world import open_world

REFERENCES = {
    constraint.name: (model, constraint)
    for model in apps.get_models()
    for constraint in model._meta.constraints
    if isinstance(constraint, CompositeForeignKey)
}
# A copy of a row must not collide with it: columns of unique keys that the reference itself does not change.
FRESH = {
    "accounts_apikey": {"digest": "\\x00"},
    "accounts_idempotencyrecord": {"key_digest": "\\x00"},
    "accounts_portalpass": {"link_digest": "\\x00"},
    "consent_consentstate": {"purpose": "memory.improve"},
    "consent_notice": {"language": "pl"},
    "consent_purposeversion": {"number": 99},
    "memory_chunk": {"position": 99},
    "memory_document": {"name": "another"},
    "memory_posting": {"term": 99},
    "memory_profileentry": {"key_digest": "\\x00"},
    "memory_profilekey": {"key": "another"},
    "memory_session": {"name_digest": "\\x00"},
}


@pytest.fixture(scope="module")
def filled(connect_as):
    with connect_as("fmn_audit") as audit:
        return fill(audit)


class Copier:
    """Stores copies of Acme's rows, with another reference, as one role; nothing is kept."""

    def __init__(self, writing, superuser, filled, reference):
        self.writing, self.superuser, self.filled = writing, superuser, filled
        self.model, self.reference = REFERENCES[reference]
        self.target = apps.get_model(self.reference.to)
        self.table = self.model._meta.db_table

    @property
    def is_about_people(self):
        return "subject_id" in self.columns

    @property
    def columns(self):
        return {field.column for field in self.model._meta.concrete_fields}

    def own(self):
        """A target that Mia's row may point to (or Acme's, when the row is nobody's)."""
        return self._target(self.filled.acme.id, self.filled.mia.id)

    def strangers(self):
        """Targets of another tenant, and of another person when the reference carries the person."""
        yield self._target(self.filled.zenith.id, self.filled.stranger.id)
        if "subject_id" in self.reference.to_columns:
            yield self._target(self.filled.acme.id, self.filled.noa.id)
        yield uuid7()

    def store(self, target):
        row = self._stored_row() | FRESH.get(self.table, {}) | {self.reference.columns[-1]: str(target)}
        if "id" in row:
            row["id"] = str(uuid7())
        names = sql.SQL(", ").join(map(sql.Identifier, row))
        statement = sql.SQL(
            "INSERT INTO {table} ({names}) SELECT {names} FROM jsonb_populate_record(NULL::{table}, %s)"
        )
        with self.writing.transaction(force_rollback=True):
            enter(self.writing, Setting(str(self.filled.acme.id), "*", "", self.filled.pseudonyms["mia"]))
            self.writing.execute(statement.format(table=sql.Identifier(self.table), names=names), [json.dumps(row)])
            self.writing.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def _stored_row(self):
        whose = "tenant_id = %s AND subject_id = %s" if self.is_about_people else "tenant_id = %s"
        values = [self.filled.acme.id, self.filled.mia.id][: whose.count("%s")]
        found = self.superuser.execute(f"SELECT to_jsonb(t) FROM {self.table} t WHERE {whose} LIMIT 1", values)
        return found.fetchone()[0]

    def _target(self, tenant_id, subject_id):
        columns = {field.column for field in self.target._meta.concrete_fields}
        person = "subject_id" if "subject_id" in columns else "id" if self.reference.to == "accounts.Subject" else None
        whose = "tenant_id = %s" + (f" AND {person} = %s" if person else "")
        values = [tenant_id, subject_id][: whose.count("%s")]
        statement = f"SELECT id FROM {self.target._meta.db_table} WHERE {whose} ORDER BY id LIMIT 1"
        return self.superuser.execute(statement, values).fetchone()[0]


@pytest.fixture(params=sorted(REFERENCES))
def reference(request):
    return request.param


@pytest.fixture(params=["postgres", "fmn_app"])
def copier(request, connect_as, filled, reference):
    """As the superuser no policy can be what refuses; as the application's role the scope is Acme's."""
    with connect_as(request.param) as writing, connect_as("postgres") as superuser:
        yield Copier(writing, superuser, filled, reference)


def test_reference_to_ones_own_is_stored(copier):
    copier.store(copier.own())


def test_reference_to_a_stranger_is_refused_by_the_database(copier):
    for stranger in copier.strangers():
        with pytest.raises(errors.ForeignKeyViolation) as refused:
            copier.store(stranger)
        assert refused.value.diag.constraint_name == copier.reference.name


def test_reference_to_a_stranger_says_nothing_of_whether_it_exists(copier):
    messages = set()
    for stranger in copier.strangers():
        with pytest.raises(errors.ForeignKeyViolation) as refused:
            copier.store(stranger)
        messages.add(str(refused.value).replace(str(stranger), "…"))

    assert len(messages) == 1


def test_reference_without_the_constraints_is_stored(connect_as, filled, reference):
    """The control: nothing else refuses it. All of the table's go, since changing the person breaks several at once."""
    with connect_as("postgres") as superuser:
        copier = Copier(superuser, superuser, filled, reference)
        strangers = list(copier.strangers())
        for name, (model, _) in REFERENCES.items():
            if model is copier.model:
                superuser.execute(f'ALTER TABLE {copier.table} DROP CONSTRAINT "{name}"')
        for stranger in strangers:
            copier.store(stranger)
        superuser.rollback()


def test_references_between_rows_of_tenants_all_carry_the_tenant(connect_as):
    """Plain foreign keys lead to the tenant or to global tables only."""
    with connect_as("postgres") as superuser:
        plain = superuser.execute(
            "SELECT DISTINCT confrelid::regclass::text FROM pg_constraint"
            " WHERE contype = 'f' AND cardinality(conkey) = 1 AND connamespace = 'public'::regnamespace ORDER BY 1"
        ).fetchall()
        composite = superuser.execute(
            "SELECT count(*) FROM pg_constraint c WHERE contype = 'f' AND cardinality(conkey) > 1"
            " AND (SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1]) = 'tenant_id'"
            " AND (SELECT attname FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[1]) = 'tenant_id'"
        ).fetchone()

    global_ones = [
        "account_emailaddress",
        "accounts_organisation",
        "accounts_user",
        "auth_group",
        "auth_permission",
        "django_content_type",
    ]
    assert [name for (name,) in plain] == sorted([*global_ones, "accounts_tenant"])
    assert composite == (len(REFERENCES),)


def test_references_between_rows_about_people_all_carry_the_person():
    lacking = [
        name
        for name, (model, constraint) in REFERENCES.items()
        if "subject_id" in {field.column for field in apps.get_model(constraint.to)._meta.concrete_fields}
        and "subject_id" not in constraint.columns
    ]

    assert lacking == []


# --- uniques ----------------------------------------------------------------------------------------------------------

# Uniques of tables under row security that do not begin with the tenant. An id is made by us and says nothing.
NOT_OF_A_TENANT = {
    "accounts_tenant_one_a_mode": "an organisation has one live and one sandbox tenant; organisations are global",
}
_UNIQUES = """
    SELECT i.indexrelid::regclass::text, i.indisprimary,
           (SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(i.indkey) WITH ORDINALITY k (number, place)
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace AND c.relrowsecurity ORDER BY 1
"""


@pytest.mark.parametrize("database", ["", "forgetmenot_keys"])
def test_uniques_begin_with_the_tenant_or_are_the_bare_id(connect_as, database):
    with connect_as("postgres", database) as superuser:
        uniques = superuser.execute(_UNIQUES).fetchall()

    across = [
        name
        for name, primary, columns in uniques
        if columns[0] != "tenant_id" and not (primary and columns == ["id"]) and name not in NOT_OF_A_TENANT
    ]
    assert uniques != []
    assert across == []


def test_names_taken_by_another_tenant_are_free(filled):
    """What Acme and Zenith already call theirs, a third tenant may call its own."""
    third = open_world("Third")
    project = expect(201, third.admin.post("/v1/projects", {"name": "handbook"}))
    document = {"name": "menu", "text": "Soup every day.", "project": project["id"]}

    person = expect(201, third.admin.put("/v1/subjects/mia", {}))
    stored = expect(202, third.admin.post("/v1/knowledge/documents", document, Idempotency_Key="document"))
    declared = expect(200, third.admin.put("/v1/profile-keys/preferences.language", {}))

    assert UUID(person["id"]) not in (filled.mia.id, filled.stranger.id)
    assert stored["version"] == 1
    assert declared["key"] == "preferences.language"


def test_names_taken_within_the_tenant_are_not_free(filled):
    """The control: the same names do collide where they should."""
    answer = filled.acme.admin.post("/v1/projects", {"name": "handbook"})

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
