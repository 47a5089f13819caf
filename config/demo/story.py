"""The story: Mia says yes, is remembered, is protected, and says no again. Acme, Zenith and Mia are made up.

Every tenant is fresh, so the story can be told as often as one likes.
"""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from config.demo.narrator import LISTED, Narrator
from config.demo.operator import Operator
from config.demo.people import Client
from config.demo.thief import sentences_in, vectors_in
from memory.chunking import searchable_text

FACTS = (
    "Mia lives in Lyon and works as a nurse on night shifts.",
    "Mia is training for the Lyon half marathon in October.",
    "Mia prefers short answers without small talk.",
)
ALLERGY = "Mia is allergic to peanuts; she carries an adrenaline pen."
DINNER = "What should I cook for tonight's dinner?"
RETURNS = "How long do I have to send back a pan that I do not like?"
HANDBOOK = """# Acme Kitchen handbook

## Returns

Cookware can be sent back within 60 days of delivery, even used, and the shipping label is free.

## Care

Cast iron is dried on the stove and rubbed with a few drops of oil. It never goes into the dishwasher.

## Warranty

Enamel is guaranteed for ten years against chipping in normal use.
"""
RETURNS_RULE = "within 60 days of delivery"


@dataclass(frozen=True, slots=True)
class Cast:
    """Kit is Acme's agent; the consent screen relays what Mia says; the officer reads the log; Zoe is a stranger."""

    kit: Client
    consent_screen: Client
    admin: Client
    officer: Client
    zoe: Client
    mia: str

    def path(self, rest: str = "") -> str:
        return f"/v1/subjects/{self.mia}{rest}"


def tell(narrator: Narrator, address: str, operator: Operator) -> None:
    cast = _open_the_stage(narrator, address, operator)
    _nothing_without_a_yes(narrator, cast)
    _she_consents(narrator, cast)
    _the_allergy_waits(narrator, cast)
    _the_handbook(narrator, cast)
    _a_new_session(narrator, cast)
    _a_stranger(narrator, cast)
    _a_thief(narrator, cast, operator)
    _she_withdraws(narrator, cast)
    _what_the_log_says(narrator, cast)


def _open_the_stage(narrator: Narrator, address: str, operator: Operator) -> Cast:
    narrator.chapter("Acme and Zenith open accounts (demo tenants)")
    run = uuid4().hex[:8]
    acme, zenith = operator.open_tenant(f"Acme {run} (demo)"), operator.open_tenant(f"Zenith {run} (demo)")
    keys = {name: Client(address, acme[name]) for name in ("agent", "consent", "admin", "officer")}
    cast = Cast(keys["agent"], keys["consent"], keys["admin"], keys["officer"], Client(address, zenith["agent"]), "mia")
    narrator.answer("Acme makes Mia known", cast.kit.put(cast.path(), {"name": "Mia", "locale": "en"}), 201)
    for key, schema, sensitive in (
        ("preferences.language", {"type": "string", "maxLength": 35}, False),
        ("diet.allergies", {"type": "array", "items": {"type": "string"}}, True),
    ):
        body = {"schema": schema, "sensitive": sensitive}
        narrator.answer(f"Acme declares the profile key {key}", cast.admin.put(f"/v1/profile-keys/{key}", body), 200)
    return cast


def _nothing_without_a_yes(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("Nobody has asked Mia yet")
    refused = cast.kit.post(cast.path("/memories"), {"text": FACTS[0]})
    narrator.answer("Storing for Mia is refused", refused, 403, "consent_required")
    relayed = cast.kit.post(cast.path("/consents"), _yes("memory.store"))
    narrator.answer("The agent cannot say yes for her", relayed, 403, "scope_missing")


def _she_consents(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("Mia says yes to being remembered and to personal answers")
    said = cast.consent_screen.post(cast.path("/consents"), _yes("memory.store", "memory.personalise"))
    narrator.answer("Her yes is entered in the ledger", said, 201)
    items = [{"text": fact, "source": "person", "session": "first-chat", "kind": "semantic"} for fact in FACTS]
    stored = cast.kit.post(cast.path("/memories"), {"items": items})
    body = narrator.answer("The agent stores what she said in their conversation", stored, 201)
    narrator.check("The answer holds ids and states, no content", "text" not in str(body))
    profile = cast.kit.put(cast.path("/profile/preferences.language"), {"value": "en-GB"})
    narrator.answer("The agent stores her language in the profile", profile, 200)


def _the_allergy_waits(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("Her allergy is a sensitive matter")
    allergy = {"text": ALLERGY, "source": "person", "categories": ["health"], "importance": 0.95}
    refused = cast.kit.post(cast.path("/memories"), allergy)
    narrator.answer("It is refused until she allows it", refused, 403, "consent_required")
    in_profile = cast.kit.put(cast.path("/profile/diet.allergies"), {"value": ["peanut"]})
    narrator.answer("So is the sensitive profile key", in_profile, 403, "consent_required")
    said = cast.consent_screen.post(cast.path("/consents"), _yes("memory.sensitive"))
    narrator.answer("She allows sensitive memories", said, 201)
    narrator.answer("Now it is stored", cast.kit.post(cast.path("/memories"), allergy), 201)
    in_profile = cast.kit.put(cast.path("/profile/diet.allergies"), {"value": ["peanut"]})
    narrator.answer("And the profile key is", in_profile, 200)


def _the_handbook(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("Acme teaches its agent the handbook")
    document = {"name": "handbook", "title": "Acme Kitchen handbook", "format": "markdown", "text": HANDBOOK}
    stored = narrator.answer("It is taken in", cast.admin.post("/v1/knowledge/documents", document), 202)
    job: dict[str, Any] = (
        cast.admin.wait_for_job(stored["job"]["id"]) if "job" in stored else {"state": "missing", "result": {}}
    )
    narrator.check(
        f"A worker cuts and embeds it ({job['result'].get('chunks', 0)} passages)", job["state"] == "succeeded"
    )


def _a_new_session(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("A new session, days later")
    dinner = narrator.answer(f"Mia asks: {DINNER}", _recall(cast, DINNER), 200)
    _show(narrator, dinner)
    critical = [memory["text"] for memory in dinner.get("memories", ()) if memory["critical"]]
    narrator.check("The peanut allergy comes up, though no word of it was said", ALLERGY in critical)
    block = dinner["context"]["text"] if "context" in dinner else ""
    narrator.check("It stands in the context block for the model", ALLERGY.partition(";")[0] in block)
    returns = narrator.answer(f"Mia asks: {RETURNS}", _recall(cast, RETURNS), 200)
    _show(narrator, returns)
    passages = [passage["text"] for passage in returns.get("knowledge", ())]
    narrator.check("The right passage of the handbook comes first", passages and RETURNS_RULE in passages[0])


def _a_stranger(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("Zenith tries Mia's id with its own key")
    for claim, response in (
        ("Her account is not there", cast.zoe.get(cast.path())),
        ("Her memories are not there", cast.zoe.get(cast.path("/memories"))),
        ("There is nothing to recall", _recall(cast, DINNER, by=cast.zoe)),
    ):
        narrator.answer(claim, response, 404, "not_found")


def _a_thief(narrator: Narrator, cast: Cast, operator: Operator) -> None:
    narrator.chapter("A thief dumps every database")
    dump = operator.dump_everything()
    narrator.say(f"{len(dump) // 1024} KiB of dump, searched as text, hex, base64, and for vectors in four forms")
    secrets = [*FACTS, ALLERGY]
    narrator.check("None of Mia's sentences is in it", not sentences_in(dump, secrets))
    narrator.check("None of her vectors is in it", not vectors_in(dump, secrets))
    found = cast.admin.post("/v1/knowledge/search", {"query": RETURNS, "limit": 1}).json().get("knowledge", [])
    shared = [searchable_text(passage["title"], passage["heading"], passage["text"]) for passage in found]
    narrator.check("The search does find what is not sealed: the handbook's text", sentences_in(dump, [RETURNS_RULE]))
    narrator.check("And the handbook's vector", shared and vectors_in(dump, shared))


def _she_withdraws(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("Mia changes her mind")
    no = {"event": "withdrawn", "purposes": ["memory.store", "memory.personalise"], "spoken_by": "person"}
    narrator.answer("Her withdrawal is entered", cast.consent_screen.post(cast.path("/consents"), no), 201)
    answer = narrator.answer(f"The agent asks: {RETURNS}", _recall(cast, RETURNS), 200)
    _show(narrator, answer)
    refused = {"status": "refused", "code": "consent_withdrawn"}
    narrator.check("The answer says that she withdrew", answer.get("personal") == refused)
    narrator.check("Nothing personal is in it", not answer.get("memories") and not answer.get("profile"))
    narrator.check("The handbook still answers", RETURNS_RULE in str(answer.get("knowledge")))
    listed = cast.kit.get(cast.path("/memories"))
    narrator.answer("Her memories' own route is closed", listed, 403, "consent_withdrawn")


def _what_the_log_says(narrator: Narrator, cast: Cast) -> None:
    narrator.chapter("What the officer reads in the audit log")
    log = narrator.answer("The log answers", cast.officer.get("/v1/audit/events", subject=cast.mia, limit="200"), 200)
    events = list(dict(log).get("items", []))
    actions = {event["action"] for event in events}
    expected = {
        "consent.decision.refused",
        "consent.statement.recorded",
        "memory.memory.stored",
        "memory.profile.changed",
        "memory.recall.answered",
    }
    narrator.check("Every chapter about Mia is there", expected <= actions)
    narrator.check("No sentence of hers is", not sentences_in(str(log), [*FACTS, ALLERGY]))
    for event in events[:LISTED]:
        outcome = event["reason"] or event["decision"] or event["result"]
        narrator.say(f"{event['at'][11:23]}  {event['action']:<28} {outcome:<18} {', '.join(event['purposes'])}")
    narrator.say(f"… {len(events)} events about Mia in all, under the pseudonym {events[0]['subject_pseudonym'][:8]}…")


def _yes(*purposes: str) -> dict[str, Any]:
    return {
        "event": "given",
        "purposes": list(purposes),
        "spoken_by": "person",
        "surface": "chat",
        "method": "typed",
        "evidence": "message m-17: yes please, remember that",
    }


def _recall(cast: Cast, query: str, by: Client | None = None) -> Any:
    return (by or cast.kit).post(cast.path("/recall"), {"query": query, "limit": 5, "knowledge_limit": 2})


def _show(narrator: Narrator, answer: dict[str, Any]) -> None:
    for line in answer.get("context", {}).get("text", "").splitlines():
        narrator.say(line)
