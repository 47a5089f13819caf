"""The profile as tests use it: declare, set, get, list over REST."""


def code(answer):
    return answer.status_code, answer.json()["code"]


def declare(world, key, schema=None, *, query="", **facts):
    body = {"schema": schema or {"type": "string"}} | facts
    answer = world.admin.put(f"/v1/profile-keys/{key}{query}", body)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def put(person, key, value, query="", **headers):
    return person.world.agent.put(f"{person.path}/profile/{key}{query}", {"value": value}, **headers)


def get(person, key, query=""):
    return person.world.agent.get(f"{person.path}/profile/{key}{query}")


def profile(person, query=""):
    items = person.world.agent.get(f"{person.path}/profile{query}").json()["items"]
    return {item["key"]: item["value"] for item in items}
