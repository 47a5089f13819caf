from django.apps import AppConfig


class Root(AppConfig):
    name = "config"

    def ready(self) -> None:
        import config.celery  # app ready: makes it the current Celery application in every process
        import config.openapi  # noqa: F401  app ready: registers the bearer key with the schema
