"""Django's settings, all from ``BATON_*`` environment variables.

Guarantees: no secret and no machine path is written here; every ``BATON_*`` value appears as a
setting of the same name, so that tests may override it. Leaves to others: reading and checking the
environment (``env``), the business database (``databases``), logs (``logs``), Celery
(``transport``).
"""

from config.settings.databases import business_database
from config.settings.env import read_environment
from config.settings.logs import configure_structlog, logging_settings
from config.settings.refusing import stop_with_a_sentence
from config.settings.secret import load_or_create_secret_key

with stop_with_a_sentence():
    BATON = read_environment()
    DATABASES = {"default": business_database(BATON.database_url, data_dir=BATON.data_dir)}
BATON.data_dir.mkdir(parents=True, exist_ok=True)

BATON_DATA_DIR = BATON.data_dir
BATON_MONGO_URL = BATON.mongo_url
BATON_REDIS_URL = BATON.redis_url
BATON_BROKER_URL = BATON.effective_broker_url
BATON_DATABASE = BATON.database
BATON_KEY_PREFIX = BATON.key_prefix
BATON_LEASE_SECONDS = BATON.lease_seconds
BATON_HANG_GRACE_SECONDS = BATON.hang_grace_seconds
BATON_SLOTS_PER_CHILD = BATON.slots_per_child
BATON_GROUP_COMMITS = BATON.group_commits
BATON_CLOCK_OFFSET_MS = BATON.clock_offset_ms
BATON_TYPES_OFF = BATON.types_off
BATON_FETCH_ALLOW_PRIVATE = BATON.fetch_allow_private
BATON_API_RATE = BATON.api_rate
BATON_LLM_URL = BATON.llm_url
BATON_LLM_KEY = BATON.llm_key
BATON_LLM_MODEL = BATON.llm_model
BATON_SPEECH_SERVICE_URL = BATON.speech_service_url
BATON_SPEECH_URL = BATON.speech_url
BATON_SPEECH_KEY = BATON.speech_key
BATON_SPEECH_MODEL = BATON.speech_model
BATON_PUBLIC_URL = BATON.public_url

DEBUG = BATON.debug
SECRET_KEY = BATON.secret_key or load_or_create_secret_key(BATON.data_dir)
SECRET_KEY_FALLBACKS = list(BATON.secret_key_fallbacks)
ALLOWED_HOSTS = list(BATON.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(BATON.csrf_trusted_origins)

INSTALLED_APPS = [
    "ops_console.apps.OpsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "jobs",
    "ops_console",
    "config",
]
MIDDLEWARE = [
    "jobs.api.middleware.RequestIdMiddleware",
    "jobs.api.middleware.ProblemMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
APPEND_SLASH = True

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/ops/login/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BATON.secure_cookies
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "/static/"
STATIC_ROOT = BATON.data_dir / "static"
STATIC_ROOT.mkdir(exist_ok=True)
# Serves the apps' own files where collectstatic never ran (make up, tests).
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = BATON.debug

REST_FRAMEWORK = {
    # The token class comes first, else an anonymous caller is told 403 instead of 401.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "jobs.api.authentication.BearerAuthentication",
        "jobs.api.authentication.TenantSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["jobs.api.authentication.HasTenant"],
    "DEFAULT_THROTTLE_CLASSES": ["jobs.api.throttling.TenantThrottle"],
    "DEFAULT_PARSER_CLASSES": ["jobs.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["jobs.api.renderers.ApiRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "jobs.api.errors.exception_handler",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "jobs.api.renderers.ApiNegotiation",
    "URL_FORMAT_OVERRIDE": None,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Baton jobs API",
    "DESCRIPTION": "Ask for content work and follow it. Errors are problem+json (RFC 9457).",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
}

configure_structlog()
LOGGING = logging_settings(level=BATON.log_level, output=BATON.log_format)
