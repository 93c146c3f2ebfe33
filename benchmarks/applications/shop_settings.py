"""The settings of a shop of django-oscar, as its documentation gives them."""

# ruff: noqa: F403 - django-oscar's settings are imported like this

import os

from oscar.defaults import *

SECRET_KEY = "of a test"
DEBUG = False
ALLOWED_HOSTS = ["*"]
USE_TZ = True
TIME_ZONE = "UTC"
SITE_ID = 1
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", "postgres"),
        "ATOMIC_REQUESTS": True,
    }
}
INSTALLED_APPS = [
    *(f"django.contrib.{name}" for name in (
        "admin", "auth", "contenttypes", "sessions", "messages", "staticfiles", "sites",
        "flatpages",
    )),
    "oscar.config.Shop",
    *(f"oscar.apps.{name}" for name in (
        "analytics.apps.AnalyticsConfig", "checkout.apps.CheckoutConfig",
        "address.apps.AddressConfig", "shipping.apps.ShippingConfig",
        "catalogue.apps.CatalogueConfig", "catalogue.reviews.apps.CatalogueReviewsConfig",
        "communication.apps.CommunicationConfig", "partner.apps.PartnerConfig",
        "basket.apps.BasketConfig", "payment.apps.PaymentConfig", "offer.apps.OfferConfig",
        "order.apps.OrderConfig", "customer.apps.CustomerConfig", "search.apps.SearchConfig",
        "voucher.apps.VoucherConfig", "wishlists.apps.WishlistsConfig",
        "dashboard.apps.DashboardConfig",
    )),
    *(f"oscar.apps.dashboard.{name}DashboardConfig" for name in (
        "reports.apps.Reports", "users.apps.Users", "orders.apps.Orders",
        "catalogue.apps.Catalogue", "offers.apps.Offers", "partners.apps.Partners",
        "pages.apps.Pages", "ranges.apps.Ranges", "reviews.apps.Reviews",
        "vouchers.apps.Vouchers", "communications.apps.Communications",
        "shipping.apps.Shipping",
    )),
    "widget_tweaks", "haystack", "treebeard", "sorl.thumbnail", "django_tables2",
]  # fmt: skip
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
]
AUTHENTICATION_BACKENDS = (
    "oscar.apps.customer.auth_backends.EmailBackend",
    "django.contrib.auth.backends.ModelBackend",
)
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.template.context_processors.i18n",
                "django.contrib.messages.context_processors.messages",
                "oscar.apps.search.context_processors.search_form",
                "oscar.apps.checkout.context_processors.checkout",
                "oscar.apps.communication.notifications.context_processors.notifications",
                "oscar.core.context_processors.metadata",
            ]
        },
    }
]
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
ROOT_URLCONF = "shop_urls"
STATIC_URL = "/static/"
MEDIA_URL = "/media/"
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
OSCAR_ALLOW_ANON_CHECKOUT = True
OSCAR_DEFAULT_CURRENCY = "GBP"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
LOGGING = {"version": 1, "disable_existing_loggers": True}
