"""What every serving process uses. Everything comes from the environment; nothing is unsafe by default."""

from functools import partial
from pathlib import Path
from typing import Any

import dj_database_url
from celery.schedules import crontab
from django.utils.csp import CSP
from kombu import Queue

from config.env import env_flag, env_float, env_list, env_secret, env_text
from config.pooling import check_or_drain
from config.static import never_changes, static_address

BASE_DIR = Path(__file__).parents[2]
SECRET_KEY = env_secret("SECRET_KEY")
DEBUG = False
# The loopback names always: health is asked there.
ALLOWED_HOSTS = [*env_list("ALLOWED_HOSTS"), "127.0.0.1", "localhost", "[::1]"]
# TLS is ended in front of this process; HTTPS_ONLY says that there is such a front.
HTTPS_ONLY = env_flag("HTTPS_ONLY")
SECURE_SSL_REDIRECT = HTTPS_ONLY
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SESSION_COOKIE_SECURE = HTTPS_ONLY
CSRF_COOKIE_SECURE = HTTPS_ONLY
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS_ONLY else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS_ONLY
SECURE_HSTS_PRELOAD = HTTPS_ONLY
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS_ONLY else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# A page gets everything from here, nothing is written into it, and nobody frames it. `data:` are the arrows of the CSS.
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
CSRF_FAILURE_VIEW = "config.refusals.form_refused"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "rest_framework",
    "drf_spectacular",
    "config",
    "audit",
    "accounts",
    "consent",
    "memory",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.RequestIdentity",
    "config.middleware.ExactPath",
    "config.middleware.BodyLimit",
    "config.reader.Reader",
    "config.refusals.PageRefusals",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # A page that does not say it is for everybody is for those who signed in. REST has its own door.
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
WSGI_APPLICATION = "config.wsgi.application"
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
ACCOUNT_ADAPTER = "accounts.pages.adapter.ClosedSignUp"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"  # members are made known by the operator, who vouches for the address
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # nobody signs up here, so an unknown address gets no mail and the same answer
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_REDIRECT_URL = "/"
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "console"
# Proxies in front that add to X-Forwarded-For; 0 takes the address of the connection. Sign-in limits go by it.
ALLAUTH_TRUSTED_PROXY_COUNT = int(env_float("TRUSTED_PROXY_COUNT", 0))
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
CSRF_COOKIE_HTTPONLY = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "config.reader.page_context",
            ],
            "builtins": [
                "django.templatetags.i18n",
                "django.templatetags.static",
                "config.templatetags.look",
            ],
        },
    }
]

# Served from where they lie, at an address that names their content (config/static.py): nothing to collect or to renew.
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
STATIC_URL = static_address(BASE_DIR / "static")
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_IMMUTABLE_FILE_TEST = never_changes

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["config.formats"]
LANGUAGE_COOKIE_NAME = "fmn_language"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

DATABASE_POOL_SECONDS = env_float("DATABASE_POOL_SECONDS", 3.0)
# Connections a process may hold to each database; a request holds one to the data, briefly one to the log.
DATABASE_POOL_SIZE = int(env_float("DATABASE_POOL_SIZE", 16))


def pooled(alias: str, url: str, *, size: int) -> dict[str, Any]:
    """A pooled connection; a database that is down is an error in seconds, not in half a minute."""
    # Checked when taken from the pool: after an outage no request gets a connection that died in it.
    config: dict[str, Any] = dict(dj_database_url.parse(url)) | {"CONN_HEALTH_CHECKS": True}
    config["OPTIONS"] = config.get("OPTIONS", {}) | {
        "connect_timeout": 3,
        # The pool's own patience doubles its pauses up to minutes; a request that comes starts a new attempt instead.
        "pool": {
            "min_size": 0,
            "max_size": size,
            "timeout": DATABASE_POOL_SECONDS,
            "reconnect_timeout": 1.0,
            "check": partial(check_or_drain, alias),
        },
    }
    return config


DATABASES = {
    "default": pooled("default", env_secret("DATABASE_URL"), size=DATABASE_POOL_SIZE),
    "audit": pooled("audit", env_secret("AUDIT_DATABASE_URL"), size=DATABASE_POOL_SIZE),
    "keys": pooled("keys", env_secret("KEYS_DATABASE_URL"), size=DATABASE_POOL_SIZE),
    "relay": pooled("relay", env_secret("RELAY_DATABASE_URL"), size=2),
}
DATABASE_ROUTERS = ["accounts.router.KeysRouter"]

REDIS_URL = env_secret("REDIS_URL")
# kombu wants its own scheme for a unix socket.
BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=", 1)

# Counts of sign-in attempts, and nothing else: without Valkey nobody signs in, since nothing would count.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

# Mail goes to a server, or into a folder where an operator reads it. With neither, what would be mailed is refused.
MAIL_FOLDER = env_text("MAIL_FOLDER")
SMTP_HOST = env_text("SMTP_HOST")
DEFAULT_FROM_EMAIL = env_text("MAIL_FROM", "forget-me-not@localhost")
MAILERS: dict[str, dict[str, Any]] = {"default": {"BACKEND": "config.mail.NoMail"}}
if SMTP_HOST:
    MAILERS["default"] = {
        "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "OPTIONS": {
            "host": SMTP_HOST,
            "port": int(env_float("SMTP_PORT", 587)),
            "username": env_text("SMTP_USER"),
            "password": env_secret("SMTP_PASSWORD") if env_text("SMTP_USER") else "",
            "use_tls": True,
            "timeout": 10,
        },
    }
elif MAIL_FOLDER:
    MAILERS["default"] = {
        "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
        "OPTIONS": {"file_path": MAIL_FOLDER},
    }

# The root of the key hierarchy (trust.md 2): a provider by dotted path, and what it needs.
ROOT_KEY_PROVIDER = env_text("ROOT_KEY_PROVIDER", "accounts.rootkey.LocalRootKey")
READ_ROOT_KEY = partial(env_secret, "ROOT_KEY")

EMBEDDER = env_text("EMBEDDER", "memory.embedding.minilm.MiniLM")
# A question waits this long for its vector; a job, which nobody waits for, much longer.
EMBEDDER_TIMEOUT_SECONDS = env_float("EMBEDDER_TIMEOUT_SECONDS", 2.0)
EMBEDDER_JOB_TIMEOUT_SECONDS = env_float("EMBEDDER_JOB_TIMEOUT_SECONDS", 120.0)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.permissions.HasRequiredScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["accounts.http.parsing.StrictJSONParser"],
    "EXCEPTION_HANDLER": "config.problems.problem_response",
    "DEFAULT_SCHEMA_CLASS": "config.openapi.Schema",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "accounts.http.parsing.JsonOnly",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Forget-me-not",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": "Long-term memory for AI agents that belongs to the person remembered.",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.openapi.describe_refusals",
    ],
    "ENUM_NAME_OVERRIDES": {
        "AgeBand": "accounts.types.AgeBand",
        "JobState": "accounts.api.serializers.JOB_STATES",
        "DocumentState": "memory.api.knowledge.DOCUMENT_STATES",
        "Kind": "memory.api.serializers.KINDS",
        "MemoryStateName": "memory.api.serializers.STATES",
        "Source": "memory.api.serializers.ALL_SOURCES",
        "WritableSource": "memory.api.serializers.SOURCES",
        "Audience": "memory.api.serializers.AUDIENCES",
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "config.logs.ContentFree",
            "format": "%(asctime)s %(levelname)s %(name)s %(request_id)s %(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    # Those that bring handlers of their own, which would write paths and messages as they are.
    "loggers": {
        "django": {"handlers": [], "propagate": True},
        "django.server": {"handlers": [], "propagate": False},
        "uvicorn": {"handlers": [], "propagate": True},
        "uvicorn.access": {"handlers": [], "propagate": False},
    },
}

CELERY_BROKER_URL = BROKER_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# What takes long must not keep the relay waiting: a queue, and a worker, for each. A plain worker takes both.
CELERY_TASK_QUEUES = [Queue("work"), Queue("system")]
CELERY_TASK_DEFAULT_QUEUE = "work"
CELERY_TASK_ROUTES = {
    "accounts.tasks.*": {"queue": "system"},
    "memory.tasks.embed_left_over": {"queue": "system"},
    "memory.tasks.store_memory_use": {"queue": "system"},
}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 600,
    "socket_timeout": 5,
    "socket_connect_timeout": 1,
}
CELERY_BEAT_SCHEDULE = {
    "relay the outbox": {"task": "accounts.tasks.relay_outbox", "schedule": 2.0, "options": {"expires": 2}},
    "store key use": {"task": "accounts.tasks.store_key_use", "schedule": 60.0, "options": {"expires": 60}},
    "record refused keys": {"task": "accounts.tasks.record_refused_keys", "schedule": 60.0, "options": {"expires": 60}},
    "store memory use": {
        "task": "memory.tasks.store_memory_use",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "embed what is left over": {"task": "memory.tasks.embed_left_over", "schedule": 900.0, "options": {"expires": 900}},
    "sweep nightly": {"task": "accounts.tasks.sweep_nightly", "schedule": crontab(hour=3, minute=17)},
}
