#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A project of Django with an application, as its users write them: models, pages, an import, a middleware that
labels requests, and tests, whose database is in memory. `django_shop.py DIRECTORY` makes it there."""
import pathlib
import sys

FILES = {
    "manage.py": """
import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
execute_from_command_line(sys.argv)
""",
    "site_settings.py": """
SECRET_KEY = "of a test"
USE_TZ = True
ROOT_URLCONF = "shop.urls"
ALLOWED_HOSTS = ["testserver"]
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "shop"]
MIDDLEWARE = ["shop.middleware.Labels", "django.contrib.sessions.middleware.SessionMiddleware"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
""",
    "shop/__init__.py": "",
    "shop/models.py": """
from django.db import models


class Product(models.Model):
    name = models.CharField(max_length=80)
    cents = models.IntegerField()


class Order(models.Model):
    customer = models.CharField(max_length=80)


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, models.PROTECT)
    count = models.IntegerField()
""",
    "shop/middleware.py": """
import cairn
from django.urls import Resolver404, resolve


class Labels:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        try:
            endpoint = resolve(request.path_info).route
        except Resolver404:
            endpoint = "none"
        with cairn.context(endpoint=endpoint):
            return self.get_response(request)
""",
    "shop/urls.py": """
from django.urls import path

from shop import views

urlpatterns = [
    path("catalog", views.catalog),
    path("search", views.search),
    path("orders", views.order),
    path("report/<int:year>.csv", views.report),
]
""",
    "shop/views.py": """
import csv
import io

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render

from shop.models import Line, Order, Product

found = {}


def catalog(request):
    return render(request, "catalog.html", {"products": Product.objects.order_by("name")})


def search(request):
    words = request.GET["q"]
    if words not in found:  # a cache without a limit
        found[words] = list(Product.objects.filter(name__contains=words))
    return JsonResponse({"names": [product.name for product in found[words]]})


def order(request):
    one = Order.objects.create(customer=request.POST["customer"])
    for product in request.POST.getlist("product"):
        Line.objects.create(order=one, product_id=product, count=1)
    return JsonResponse({"order": one.pk}, status=201)


def report(request, year):
    out = io.StringIO()
    rows = csv.writer(out)
    for line in Line.objects.select_related("order", "product"):
        rows.writerow([line.order.customer, line.product.name, line.count * line.product.cents])
    return HttpResponse(out.getvalue(), content_type="text/csv")
""",
    "shop/templates/catalog.html": """
<ul>
{% for product in products %}
  <li><b>{{ product.name }}</b> {{ product.cents }} <a href="search?q={{ product.name|urlencode }}">more</a></li>
{% endfor %}
</ul>
""",
    "shop/tests.py": """
from django.test import TestCase

from shop import views
from shop.models import Line, Order, Product


class ShopCase(TestCase):
    @classmethod
    def setUpTestData(cls):
        Product.objects.bulk_create(Product(name=f"thing {i:04}", cents=i) for i in range(2000))

    def setUp(self):
        views.found.clear()


class CatalogTest(ShopCase):
    def test_lists_all(self):
        self.assertContains(self.client.get("/catalog"), "<li>", count=2000)

    def test_is_sorted(self):
        text = self.client.get("/catalog").content.decode()
        self.assertLess(text.index("thing 0001"), text.index("thing 1999"))

    def test_escapes(self):
        Product.objects.create(name="a<b", cents=1)
        self.assertContains(self.client.get("/catalog"), "a&lt;b")


class SearchTest(ShopCase):
    def test_finds(self):
        self.assertEqual(self.client.get("/search", {"q": "thing 0007"}).json(), {"names": ["thing 0007"]})

    def test_finds_nothing(self):
        self.assertEqual(self.client.get("/search", {"q": "nothing"}).json(), {"names": []})

    def test_keeps_what_was_found(self):
        for i in range(20):
            self.client.get("/search", {"q": f"thing {i:02}"})
        with self.assertNumQueries(0):
            self.client.get("/search", {"q": "thing 00"})

    def test_all_of_them(self):
        self.assertEqual(len(self.client.get("/search", {"q": "thing"}).json()["names"]), 2000)


class OrderTest(ShopCase):
    def buy(self, customer, count):
        products = list(Product.objects.values_list("pk", flat=True)[:count])
        return self.client.post("/orders", {"customer": customer, "product": products})

    def test_is_created(self):
        self.assertEqual(self.buy("Ada", 3).status_code, 201)
        self.assertEqual(Order.objects.get().customer, "Ada")

    def test_has_lines(self):
        self.buy("Ada", 50)
        self.assertEqual(Line.objects.count(), 50)

    def test_report_is_empty(self):
        self.assertEqual(self.client.get("/report/2026.csv").content, b"")

    def test_report_has_rows(self):
        for customer in ("Ada", "Alan"):
            self.buy(customer, 100)
        self.assertEqual(self.client.get("/report/2026.csv").content.decode().count("Alan"), 100)

    def test_no_such_page(self):
        self.assertEqual(self.client.get("/nothing").status_code, 404)
""",
}


def make(directory):
    for name, text in FILES.items():
        path = pathlib.Path(directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.removeprefix("\n"), encoding="ascii")


if __name__ == "__main__":
    make(sys.argv[1])
