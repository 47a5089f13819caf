"""A reference that acts when its target goes needs an index, or deleting n rows reads n² of them."""

from django.apps import apps

from accounts.constraints import CompositeForeignKey


def acting_references():
    return [
        (model._meta.db_table, reference)
        for model in apps.get_models()
        for reference in model._meta.constraints
        if isinstance(reference, CompositeForeignKey) and reference.on_delete
    ]


def leading_columns(superuser, table):
    """The columns of each index of a table, in order."""
    rows = superuser.execute(
        "SELECT array_agg(a.attname::text ORDER BY k.place) FROM pg_index i"
        " CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
        " WHERE i.indrelid = %s::regclass GROUP BY i.indexrelid",
        [table],
    )
    return [columns for (columns,) in rows]


def test_every_reference_that_acts_has_an_index(connect_as):
    with connect_as("postgres") as superuser:
        missing = [
            (table, reference.name)
            for table, reference in acting_references()
            if not any(
                set(columns[: len(reference.columns)]) == set(reference.columns)
                for columns in leading_columns(superuser, table)
            )
        ]

    assert len(acting_references()) == 5
    assert missing == []
