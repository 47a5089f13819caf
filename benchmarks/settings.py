"""The product's settings with one more address: the bare view that figures over HTTP are compared with."""

from config.settings.base import *  # noqa: F403  settings extend base by design

ROOT_URLCONF = "benchmarks.urls"
