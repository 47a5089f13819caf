"""The log in plain SQL: events partitioned by month, row policies by role, append-only by grant and by trigger.

The roles are provisioned before the first migration. Only `fmn_owner` owns what is made here, and it cannot log in; who can
become it (`fmn_migrate`) meets the triggers. Start at `EVENTS`.
"""

from django.db import migrations, models

# A restore from a backup begins a new epoch: transaction ids start over, so (epoch, xid, id) still only ascends.
EPOCHS = """
CREATE TABLE public.audit_epoch (
    epoch    integer PRIMARY KEY CHECK (epoch > 0),
    began_at timestamptz NOT NULL DEFAULT now(),
    reason   text NOT NULL CHECK (reason ~ '^[a-z_]{1,40}$')
);
INSERT INTO public.audit_epoch (epoch, reason) VALUES (1, 'installed');

-- The body is bound when it is defined: no search_path and no temporary table of a caller can put another one under it.
CREATE FUNCTION public.audit_current_epoch() RETURNS integer
    LANGUAGE sql STABLE
    RETURN (SELECT max(epoch) FROM public.audit_epoch);
"""

# The patterns are those of audit/types.py: an INSERT that goes round Python can bring in no free text either.
EVENTS = """
CREATE TABLE public.audit_event (
    id                 uuid PRIMARY KEY,
    tenant_id          uuid NOT NULL,
    at                 timestamptz NOT NULL,
    actor_kind         text NOT NULL CHECK (actor_kind IN ('user', 'api_key', 'person', 'system')),
    actor_id           text NOT NULL CHECK (CASE actor_kind
                           WHEN 'system' THEN actor_id ~ '^[a-z][a-z_.]{0,162}$'
                           WHEN 'person' THEN actor_id ~ '^[0-9a-f]{32,64}$'
                           ELSE actor_id ~ '^[0-9a-f-]{36}$' END),
    actor_on_behalf_of text NOT NULL CHECK (actor_on_behalf_of ~ '^[0-9a-f-]{0,64}$'),
    action             text NOT NULL CHECK (action ~ '^[a-z_]{1,40}[.][a-z_]{1,40}[.][a-z_]{1,40}$'),
    resource_kind      text NOT NULL CHECK (resource_kind ~ '^[a-z_]{1,40}$'),
    resource_ids       uuid[] NOT NULL CHECK (cardinality(resource_ids) <= 10000),
    subject_pseudonym  text NOT NULL CHECK (subject_pseudonym ~ '^([0-9a-f]{32,64})?$'),
    purposes           text[] NOT NULL CHECK (cardinality(purposes) <= 64 AND purposes::text ~ '^[{][a-z_.,]*[}]$'),
    consent_refs       text[] NOT NULL CHECK (cardinality(consent_refs) <= 64
                                              AND consent_refs::text ~ '^[{][0-9a-f,-]*[}]$'),
    decision           text NOT NULL CHECK (decision IN ('', 'allowed', 'refused')),
    reason             text NOT NULL CHECK (reason ~ '^[a-z_]{0,40}$'),
    request_id         text NOT NULL CHECK (request_id ~ '^[A-Za-z0-9_-]{0,64}$'),
    counts             jsonb NOT NULL CHECK (counts::text ~ '^[{]("[a-z_]{1,40}": [0-9]{1,16}(, )?)*[}]$'),
    result             text NOT NULL CHECK (result IN ('ok', 'refused', 'failed')),
    canonical          bytea NOT NULL CHECK (octet_length(canonical) BETWEEN 2 AND 1048576),
    epoch              integer NOT NULL DEFAULT public.audit_current_epoch(),
    xid                xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id()
) PARTITION BY RANGE (id);

CREATE INDEX audit_event_tenant ON public.audit_event (tenant_id, id);
CREATE INDEX audit_event_subject ON public.audit_event (tenant_id, subject_pseudonym, id);
CREATE INDEX audit_event_action ON public.audit_event (tenant_id, action, id);
CREATE INDEX audit_event_sealing ON public.audit_event (epoch, xid, id);
"""

# TG_OP is looked at first: for TRUNCATE there is neither OLD nor NEW. ALWAYS: also under session_replication_role=replica.
# A row trigger of the parent is cloned to its partitions; a TRUNCATE trigger is not, so every table gets its own.
GUARDS = """
CREATE FUNCTION public.audit_refuse_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog
    AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'the audit log is append-only: % cannot be truncated', TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RAISE EXCEPTION 'the audit log is append-only: no % of a row of %', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE FUNCTION public.audit_guard_table(guarded regclass) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog
    AS $$
DECLARE
    grantee oid;
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', guarded);
    EXECUTE format('CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON %s'
                   ' FOR EACH STATEMENT EXECUTE FUNCTION public.audit_refuse_change()', guarded);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER audit_no_truncate', guarded);
    -- Default privileges may have granted something when the table was made.
    FOR grantee IN
        SELECT DISTINCT entry.grantee FROM pg_class, aclexplode(relacl) AS entry
        WHERE pg_class.oid = guarded AND entry.grantee <> relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', guarded,
                       CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END);
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION public.audit_guard_table(regclass) FROM PUBLIC;

SELECT public.audit_guard_table('public.audit_event');
CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON public.audit_event
    FOR EACH ROW EXECUTE FUNCTION public.audit_refuse_change();
ALTER TABLE public.audit_event ENABLE ALWAYS TRIGGER audit_no_change;

CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON public.audit_epoch
    FOR EACH ROW EXECUTE FUNCTION public.audit_refuse_change();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON public.audit_epoch
    FOR EACH STATEMENT EXECUTE FUNCTION public.audit_refuse_change();
ALTER TABLE public.audit_epoch ENABLE ALWAYS TRIGGER audit_no_change;
ALTER TABLE public.audit_epoch ENABLE ALWAYS TRIGGER audit_no_truncate;
"""

# INSERT is granted by column, without epoch and xid: a writer cannot put an event behind the sealer's cursor.
# app.subject_id: '' or '*' is the tenant's desk; anything else is one person, who sees the events of their own pseudonym only.
ACCESS = """
CREATE POLICY app_reads ON public.audit_event FOR SELECT TO fmn_app USING (
    tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)
    AND (
        (SELECT coalesce(current_setting('app.subject_id', true), '') IN ('', '*'))
        OR subject_pseudonym = (SELECT nullif(current_setting('app.subject_pseudonym', true), ''))
    )
);
CREATE POLICY app_writes ON public.audit_event FOR INSERT TO fmn_app WITH CHECK (
    tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)
);
CREATE POLICY audit_writes ON public.audit_event FOR INSERT TO fmn_audit WITH CHECK (true);
CREATE POLICY sealer_reads ON public.audit_event FOR SELECT TO fmn_sealer USING (true);

GRANT SELECT ON public.audit_event TO fmn_app, fmn_sealer;
GRANT INSERT (
    id, tenant_id, at, actor_kind, actor_id, actor_on_behalf_of, action, resource_kind, resource_ids, subject_pseudonym,
    purposes, consent_refs, decision, reason, request_id, counts, result, canonical
) ON public.audit_event TO fmn_app, fmn_audit;
REVOKE ALL ON public.audit_epoch FROM PUBLIC, fmn_app, fmn_audit, fmn_relay, fmn_sealer;
GRANT SELECT ON public.audit_epoch TO fmn_app, fmn_audit, fmn_sealer;
GRANT EXECUTE ON FUNCTION public.audit_current_epoch() TO fmn_app, fmn_audit;
"""

# A month's lower bound is the smallest UUID of its first millisecond (RFC 9562, 5.7: 48 bits of Unix milliseconds first).
# Attached, not created in place: that does not lock out those who write to other months. The default partition's rows are
# checked without row security; where it already holds events of a month, the month stays there (rows can never be moved).
PARTITIONS = """
CREATE FUNCTION public.audit_first_id_at(moment timestamptz) RETURNS uuid
    LANGUAGE sql STABLE
    RETURN (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

CREATE FUNCTION public.audit_create_partitions(months_ahead integer) RETURNS SETOF text
    LANGUAGE plpgsql SET search_path = pg_catalog SET lock_timeout = '10s'
    AS $$
DECLARE
    this_month constant timestamp := date_trunc('month', now() AT TIME ZONE 'UTC');
    starts timestamptz;
    ends timestamptz;
    partition text;
BEGIN
    FOR ahead IN 0..months_ahead LOOP
        starts := (this_month + ahead * interval '1 month') AT TIME ZONE 'UTC';
        ends := (this_month + (ahead + 1) * interval '1 month') AT TIME ZONE 'UTC';
        partition := to_char(starts AT TIME ZONE 'UTC', '"audit_event_"YYYY_MM');
        CONTINUE WHEN to_regclass('public.' || partition) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE public.%I (LIKE public.audit_event INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
                           partition);
            PERFORM public.audit_guard_table(('public.' || partition)::regclass);
            EXECUTE format('ALTER TABLE public.audit_event ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                           partition, public.audit_first_id_at(starts), public.audit_first_id_at(ends));
            RETURN NEXT partition;
        EXCEPTION WHEN check_violation THEN
            RAISE WARNING '% is not created: audit_event_default holds events of that month already', partition;
        END;
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION public.audit_create_partitions(integer) FROM PUBLIC;

CREATE TABLE public.audit_event_default PARTITION OF public.audit_event DEFAULT;
SELECT public.audit_guard_table('public.audit_event_default');
SELECT public.audit_create_partitions(12);
"""


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [
        migrations.RunSQL(
            EPOCHS,
            "DROP FUNCTION public.audit_current_epoch(); DROP TABLE public.audit_epoch;",
        ),
        migrations.RunSQL(EVENTS, "DROP TABLE public.audit_event;"),
        migrations.RunSQL(
            GUARDS,
            "DROP TRIGGER audit_no_change ON public.audit_epoch; DROP TRIGGER audit_no_truncate ON public.audit_epoch;"
            " DROP TRIGGER audit_no_change ON public.audit_event; DROP TRIGGER audit_no_truncate ON public.audit_event;"
            " DROP FUNCTION public.audit_guard_table(regclass); DROP FUNCTION public.audit_refuse_change();",
        ),
        migrations.RunSQL(
            ACCESS,
            "DROP POLICY sealer_reads ON public.audit_event; DROP POLICY audit_writes ON public.audit_event;"
            " DROP POLICY app_writes ON public.audit_event; DROP POLICY app_reads ON public.audit_event;"
            " REVOKE ALL ON public.audit_event, public.audit_epoch FROM fmn_app, fmn_audit, fmn_sealer;",
        ),
        migrations.RunSQL(
            PARTITIONS,
            """DO $$ DECLARE part regclass; BEGIN
               FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'public.audit_event'::regclass
               LOOP EXECUTE format('DROP TABLE %s', part); END LOOP; END $$;
               DROP FUNCTION public.audit_create_partitions(integer); DROP FUNCTION public.audit_first_id_at(timestamptz);""",
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("actor_id", models.TextField()),
                ("action", models.TextField()),
                ("subject_pseudonym", models.TextField()),
                ("decision", models.TextField()),
                ("canonical", models.BinaryField()),
            ],
            options={"db_table": "audit_event", "managed": False, "default_permissions": ()},
        ),
    ]
