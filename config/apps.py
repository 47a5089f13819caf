from django.apps import AppConfig


class Root(AppConfig):
    name = "config"

    def ready(self) -> None:
        import config.celery  # noqa: F401  app ready: makes it the current Celery application in every process
