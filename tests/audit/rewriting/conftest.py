"""What the stories begin with, as in tests/rewriting; each story is one told again."""

from __future__ import annotations

from tests.audit.stories.conftest import looked_at as looked_at
from tests.audit.stories.conftest import tell as tell
from tests.rewriting.conftest import place as place
from tests.rewriting.conftest import server as server
from tests.rewriting.conftest import settings as settings
from tests.rewriting.conftest import web as web
from tests.rewriting.conftest import widget as widget
from tests.stories.conftest import widgets as widgets
