"""A small tenant beside a large one: shared knowledge is found as by brute force, whatever plan is chosen."""

import numpy as np
import psycopg
import pytest
from django.db import connection
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from uuid_utils.compat import uuid7

from accounts.tenancy import scope
from memory.encoding import Encoded
from memory.knowledge import _DENSE, KnowledgeQuery, find_chunks
from tests.house.walls import Setting, enter
from tests.world import open_world

DIMENSION, MODEL = 384, 1
SMALL, LARGE = 50, 40_000
EVERYTHING_IS_NEAR = -1.0
NEAREST_BY_INDEX = (
    "SELECT id FROM memory_chunk WHERE model_number = 1"
    f" ORDER BY (embedding::halfvec({DIMENSION})) <=> %s::halfvec({DIMENSION}) LIMIT 10"
)


class Small:
    """The tenant of 50 chunks, what it would ask, and what brute force answers."""

    def __init__(self, tenant_id, ids, vectors, queries):
        self.tenant_id, self.ids, self.queries = tenant_id, ids, queries
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def nearest(self, query, count=10):
        cosines = self.vectors @ query.astype(np.float16).astype(np.float32)
        return [self.ids[place] for place in np.argsort(-cosines)[:count]]

    def parameters(self, query):
        shown = {"vector": HalfVector(query).to_text(), "model": MODEL}
        return shown | {"tenant": self.tenant_id, "project": None, "tags": None, "since": None}


@pytest.fixture(scope="module")
def small(connect_as):
    random = np.random.default_rng(7)
    acme, zenith = open_world("Acme"), open_world("Zenith")
    with connect_as("postgres") as superuser:
        register_vector(superuser)
        store(superuser, zenith.id, unit_vectors(random, LARGE))
        vectors = unit_vectors(random, SMALL)
        ids = store(superuser, acme.id, vectors)
    with connect_as("postgres", autocommit=True) as superuser:
        superuser.execute("ANALYZE memory_chunk, memory_document")
    yield Small(acme.id, ids, vectors.astype(np.float16).astype(np.float32), unit_vectors(random, 60))
    with connect_as("postgres") as superuser:
        superuser.execute("DELETE FROM memory_document WHERE tenant_id = ANY(%s)", [[acme.id, zenith.id]])


def unit_vectors(random, count):
    vectors = random.standard_normal((count, DIMENSION), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def store(superuser, tenant_id, vectors):
    """One document with a chunk for each vector; returns the chunks' ids."""
    document, ids = uuid7(), [uuid7() for _ in vectors]
    superuser.execute(
        "INSERT INTO memory_document (id, tenant_id, name, title, source, format, tags, text, state, version,"
        " chunked_version) VALUES (%s, %s, 'bulk', 'bulk', '', 'text', '{}', '', 'ready', 1, 1)",
        [document, tenant_id],
    )
    columns = 'id, tenant_id, document_id, position, heading, text, start, "end", token_count, length, model_number'
    with superuser.cursor().copy(f"COPY memory_chunk ({columns}, embedding) FROM STDIN BINARY") as copy:
        copy.set_types(["uuid", "uuid", "uuid", "int4", "varchar", "text", *["int4"] * 4, "int2", "halfvec"])
        for position, (chunk, vector) in enumerate(zip(ids, vectors, strict=True)):
            copy.write_row((chunk, tenant_id, document, position, "", "", 0, 0, 0, 1, MODEL, HalfVector(vector)))
    return ids


def search(query):
    """The product's own search, in the scope one is in."""
    encoded = Encoded(MODEL, EVERYTHING_IS_NEAR, query[np.newaxis])
    return [found.id for found in find_chunks(KnowledgeQuery("§", encoded, limit=10))]


def dense(connection, small, query):
    """The ten best of the dense lane; its placeholders are psycopg's own, so the statement is sent as it stands."""
    return [row[0] for row in connection.execute(_DENSE, small.parameters(query)).fetchmany(10)]


def test_tenants_are_as_small_and_as_large_as_they_are_meant_to_be(connect_as, small):
    with connect_as("postgres") as superuser:
        sizes = superuser.execute(
            "SELECT count(*) FROM memory_chunk JOIN memory_document d ON d.id = document_id WHERE d.name = 'bulk'"
            " GROUP BY d.tenant_id ORDER BY 1"
        ).fetchall()

    assert sizes == [(50,), (40_000,)]


def test_search_of_the_small_tenant_equals_brute_force(small):
    for query in small.queries[:10]:
        with scope(small.tenant_id):
            found = search(query)

        assert found == small.nearest(query)


def test_search_equals_brute_force_after_fifty_queries_on_one_connection(small):
    with scope(small.tenant_id):
        for query in small.queries[:50]:
            search(query)
        found = [search(query) for query in small.queries[50:]]

    assert found == [small.nearest(query) for query in small.queries[50:]]


def test_raw_statement_equals_brute_force_after_fifty_queries_on_one_connection(stack, small):
    """Prepared at once and run often enough for the server to weigh a plan that does not know the tenant."""
    with psycopg.connect(stack.url("fmn_app"), prepare_threshold=0) as prepared:
        enter(prepared, Setting(str(small.tenant_id)))
        for query in small.queries[:50]:
            dense(prepared, small, query)
        found = [dense(prepared, small, query) for query in small.queries[50:]]

    assert found == [small.nearest(query) for query in small.queries[50:]]


@pytest.mark.parametrize(("mode", "plans"), [("force_generic_plan", (10, 0)), ("force_custom_plan", (0, 10))])
def test_raw_statement_equals_brute_force_under_either_kind_of_plan(stack, small, mode, plans):
    with psycopg.connect(stack.url("fmn_app"), prepare_threshold=0) as prepared:
        prepared.execute(f"SET plan_cache_mode = {mode}")
        enter(prepared, Setting(str(small.tenant_id)))
        found = [dense(prepared, small, query) for query in small.queries[:10]]
        used = prepared.execute(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE '%WITH scoped%'"
            " AND statement LIKE '%<=>%' AND statement NOT LIKE '%pg_prepared_statements%'"
        ).fetchall()

    assert found == [small.nearest(query) for query in small.queries[:10]]
    assert used == [plans]


def test_raw_statement_with_the_tenant_as_a_literal_equals_brute_force(stack, small):
    """As the application sends it: values in the text, so that the planner knows the tenant."""
    with psycopg.connect(stack.url("fmn_app"), cursor_factory=psycopg.ClientCursor) as literal:
        enter(literal, Setting(str(small.tenant_id)))
        found = [dense(literal, small, query) for query in small.queries[:10]]

    assert found == [small.nearest(query) for query in small.queries[:10]]


def test_application_sends_the_tenant_as_a_literal(small):
    with scope(small.tenant_id), connection.cursor() as cursor:
        cursor.execute("SELECT %s::uuid", [small.tenant_id])
        sent = bytes(cursor.cursor._query.query)

    assert sent == f"SELECT '{small.tenant_id.hex}'::uuid::uuid".encode()


def test_statement_in_another_tenants_scope_finds_nothing_of_the_one_it_names(stack, small):
    """The literal is the plan, never the wall."""
    with psycopg.connect(stack.url("fmn_app")) as serving:
        enter(serving, Setting(str(uuid7())))

        assert serving.execute(_DENSE, small.parameters(small.queries[0])).fetchall() == []


def test_statement_of_the_product_finds_what_the_plain_one_loses_to_an_approximate_index(connect_as, small):
    """The control: an index over all tenants answers with the large one's rows, of which row security leaves none."""
    with connect_as("postgres") as superuser:
        superuser.execute("SET LOCAL maintenance_work_mem = '256MB'")
        superuser.execute(
            f"CREATE INDEX approximate ON memory_chunk USING hnsw ((embedding::halfvec({DIMENSION}))"
            " halfvec_cosine_ops) WITH (m = 4, ef_construction = 16) WHERE model_number = 1"
        )
        superuser.execute("SET LOCAL ROLE fmn_app")
        for other_plan in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            superuser.execute(f"SET LOCAL {other_plan} = off")
        enter(superuser, Setting(str(small.tenant_id)))
        plain, ours = [], []
        for query in small.queries[:10]:
            nearest = set(small.nearest(query))
            answer = superuser.execute(NEAREST_BY_INDEX, [HalfVector(query).to_text()])
            plain.append(len(nearest & {row[0] for row in answer}))
            ours.append(len(nearest & set(dense(superuser, small, query))))
        superuser.rollback()

    assert sum(plain) <= 10  # of 100
    assert ours == [10] * 10
