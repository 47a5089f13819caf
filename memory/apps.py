from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "memory"

    def ready(self) -> None:
        from memory import actions, holders  # app ready

        actions.register_all()
        holders.register_all()
