"""Addresses of the pages of accounts: sign-in, the console."""

from allauth.account import views as account
from django.urls import path, re_path, register_converter
from django.views.decorators.http import require_http_methods

from accounts.http.pages import TenantConverter
from accounts.pages import console
from accounts.pages.adapter import needs_mail

register_converter(TenantConverter, "tenant")

# allauth's views take every method.
form = require_http_methods(["GET", "HEAD", "POST"])

# Of allauth's addresses those that are used: nobody signs up, and addresses are the operator's to change.
urlpatterns = [
    path("accounts/login/", form(account.login), name="account_login"),
    path("accounts/logout/", form(account.logout), name="account_logout"),
    path("accounts/inactive/", form(account.account_inactive), name="account_inactive"),
    path("accounts/password/", form(account.password_change), name="account_change_password"),
    path("accounts/password/reset/", form(needs_mail(account.password_reset)), name="account_reset_password"),
    path("accounts/password/reset/sent/", form(account.password_reset_done), name="account_reset_password_done"),
    # The user's number first, then a token that holds hyphens itself.
    re_path(
        r"^accounts/password/reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[0-9A-Za-z-]+)/$",
        form(account.password_reset_from_key),
        name="account_reset_password_from_key",
    ),
    path(
        "accounts/password/reset/done/",
        form(account.password_reset_from_key_done),
        name="account_reset_password_from_key_done",
    ),
    path("console/", console.choose, name="console"),
    path("console/<tenant:tenant_id>/", console.overview, name="console-overview"),
]
