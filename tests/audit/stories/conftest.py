"""What the stories begin with, as in tests/stories; each story is one told again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.audit.ledger import check
from tests.audit.retelling import Retold
from tests.audit.servers import Beside, Twins
from tests.stories.conftest import Tell
from tests.stories.conftest import server as server
from tests.stories.conftest import settings as settings
from tests.stories.conftest import web as web
from tests.stories.conftest import widget as widget
from tests.stories.conftest import widgets as widgets


@pytest.fixture
def tell(sandbox: Twins, server: Beside) -> Tell:
    return lambda item: Retold(sandbox, server, item)  # type: ignore[arg-type]  # they do all that stories ask of them


@pytest.fixture(autouse=True)
def looked_at(request: pytest.FixtureRequest, sandbox: Twins) -> Iterator[None]:
    """What a story did is looked at when all of it is told."""
    yield
    check(sandbox, request.node.nodeid)
