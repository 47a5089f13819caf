from django.apps import AppConfig


class ConsentConfig(AppConfig):
    name = "consent"

    def ready(self) -> None:
        from consent import actions, holders  # app ready

        actions.register_all()
        holders.register_all()
