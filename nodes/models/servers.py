"""`Servers`: the model servers of a run, with their keys, prices and limits, and what all that ask them share.

`[servers.NAME]` in a TOML file says more than a URL can: several URLs of one model, the name of the key's environment
variable, calls a minute, prices, the longest answer. OPENAI_API_KEY goes to OpenAI's host, to OPENAI_BASE_URL, and to a
table that names it, and to nobody else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec

from nodes.models import smollm2
from nodes.models.address import key_problem, url_problem
from nodes.models.answers import OPENAI_URL, has_openai_key
from nodes.models.budget import Budget, Prices
from nodes.models.chat_format import ModelOptions
from nodes.models.http_client import HttpClient
from nodes.models.model import Model, Patience, Server
from runtime.errors import MissingVariable, UserError, choices
from runtime.extras import missing
from runtime.serialization.toml_errors import convert, read_toml

OPENAI_KEY = "OPENAI_API_KEY"
_NAME = re.compile(r"[\w-]+")


class ServerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [servers.NAME]: where a model is served, and on what terms."""

    urls: tuple[str, ...]
    key: str = ""  # the name of the environment variable that holds it; "": none is sent
    rate: float = 0.0  # calls a minute; 0: no limit
    prices: tuple[float, float] | None = None  # money per million prompt and answer tokens
    max_tokens: int | None = None  # of an answer
    extra_body: dict[str, Any] = {}  # further fields of each request


class _ServersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    servers: dict[str, dict[str, Any]] = {}


def read_servers(path: Path) -> dict[str, ServerTable]:
    """The tables [servers.NAME] of a TOML file. Raises UserError naming file, table and key."""
    raw = convert(read_toml(path), _ServersFile, str(path)).servers
    tables = {name: convert(table, ServerTable, f"{path}: [servers.{name}]") for name, table in raw.items()}
    for name, table in tables.items():
        where = f"{path}: [servers.{name}]"
        if not table.urls:
            raise UserError(f"{where} urls is empty; expected http://host:port/v1")
        for url in table.urls:
            if problem := url_problem(url):
                raise UserError(f"{where} {problem}")
        if table.rate < 0 or any(price < 0 for price in table.prices or ()):
            raise UserError(f"{where} rate and prices are 0 or more")
        if table.max_tokens is not None and table.max_tokens < 1:
            raise UserError(f"{where} max_tokens is {table.max_tokens}; expected at least 1")
    return tables


class Servers:
    """The connections, limits and the budget that all who ask in a run share."""

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        calls_per_minute: float = 0.0,
        patience: Patience | None = None,
        tables: Mapping[str, ServerTable] | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.budget = budget or Budget()
        self.patience = patience or Patience()
        self.tables = dict(tables or {})
        self._rate = calls_per_minute
        self._environment = environment
        self._http = HttpClient()
        self._smollm2: smollm2.SmolLM2 | None = None
        self._servers: dict[str, Server] = {}
        self._models: dict[object, Model] = {}

    @property
    def retries(self) -> int:
        """Calls that were made again because a server failed."""
        return sum(model.retries for model in self._models.values())

    def problem_of(self, address: str) -> str:
        """Why nothing can be asked at "URL", "NAME" of a table or "" (the default), in a sentence; "" where it can."""
        if address == smollm2.NAME and address not in self.tables:
            return smollm2.problem()
        if _NAME.fullmatch(address) and address not in self.tables:
            return f"there is no [servers.{address[:60]}]; known: {choices(self.tables) if self.tables else 'none'}"
        table = self.tables.get(address)
        urls = table.urls if table else (address or self._default_url(),)
        for url in urls:
            if problem := url_problem(url):
                return problem
            server = self._server(url, table)
            if problem := key_problem(server.key, server.key_name):
                return problem
            if server.key == "" and url.rstrip("/") == OPENAI_URL:
                name = table.key if table and table.key else OPENAI_KEY
                return MissingVariable(
                    f"{url} needs a key and {name} is not set; set it, or name a server with MODEL@URL"
                )
        lacks = missing(("aiohttp",))
        return f"a model on a server cannot be asked: {lacks}" if lacks else ""

    def model(self, name: str, address: str, options: ModelOptions, fallback: str = "") -> Model:
        """The model of that name there, asked with these options. Raises UserError where nothing can be asked.

        `fallback`: "MODEL@ADDRESS" of who is asked where that one gives no answer after a second try.
        """
        if problem := self.problem_of(address):
            raise UserError(type(problem)(f"model {name!r}: {problem}"))  # a variable that is missing stays one
        known = (name, address, repr(options), fallback)
        if known not in self._models:
            table = self.tables.get(address)
            if table is not None and table.max_tokens is not None:
                options = replace(options, max_tokens=min(options.max_tokens, table.max_tokens))
            if table is not None and table.extra_body:
                options = replace(options, extra_body={**table.extra_body, **options.extra_body})
            urls = table.urls if table else (address or self._default_url(),)
            patience = self.patience
            if address == smollm2.NAME and table is None:
                self._smollm2 = self._smollm2 or smollm2.SmolLM2()
                urls = (self._smollm2.url,)
                patience = replace(patience, attempt_s=patience.deadline_s)  # it answers one after the other
            second, _, other = fallback.partition("@")
            patience = replace(patience, attempts=patience.attempts or 2) if second else patience
            self._models[known] = Model(
                name,
                [self._server(url, table) for url in urls],
                self._http,
                options=options,
                patience=patience,
                budget=self.budget,
                fallback=self.model(second, other, options) if second else None,
            )
        return self._models[known]

    def _default_url(self) -> str:
        return self._environment.get("OPENAI_BASE_URL", "") or OPENAI_URL

    def _server(self, url: str, table: ServerTable | None) -> Server:
        table = table or next((one for one in self.tables.values() if url in one.urls), None)
        if url not in self._servers:
            if table is not None:
                key, name = self._environment.get(table.key, "") if table.key else "", table.key
            else:
                name = OPENAI_KEY
                key = self._environment.get(name, "") if has_openai_key(url, self._environment) else ""
            rate = table.rate if table is not None and table.rate else self._rate
            prices = Prices(*table.prices) if table is not None and table.prices else None
            self._servers[url] = Server(url, key, name, rate, prices)
        return self._servers[url]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, and the model on this machine."""
        await self._http.close()
        if self._smollm2 is not None:
            self._smollm2.close()
            self._smollm2 = None
            self._models.clear()
