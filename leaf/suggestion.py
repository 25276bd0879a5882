"""What a leaf is asked to suggest: how a word may go on, what it may have been meant to be, or
which words a document is to be found by.

The answer is ``Documents``, best first: the ``id`` of each is a text to search for instead, and
its ``score`` is how many documents of the whole generation have the word. Every leaf has the
statistics of the whole, so one leg is enough; where a document is named, one of its shard.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

SUGGESTIONS_MAX: Final = 100
"""More than anybody reads while typing."""

TEXT_CHARS_MAX: Final = 256
ID_CHARS_MAX: Final = 4096
WORDS_MAX: Final = 4
"""Each misspelt word costs a leaf some 50 ms; of more words in a line most are spelled well."""

Text = Annotated[str, msgspec.Meta(max_length=TEXT_CHARS_MAX)]


class Misspelt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A word that may have been meant otherwise, and the text or keyword field in which it was
    looked for; None for the default text fields.
    """

    text: Text
    field: str | None = None


class SuggestBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``prefix``: its last word is only begun; ``k`` ways to go on, the most frequent first.

    ``words``: for those that no document has in its field, the one that was most likely meant,
    where there is one; the answer's ``fields`` then say ``for`` which, and ``in`` which field.

    ``like``: the id of a document. Where the shard has it, the answer is that one document, whose
    ``fields`` have the ``words`` that tell it from others, the most telling first.
    """

    prefix: Text = ""
    k: Annotated[int, msgspec.Meta(ge=1, le=SUGGESTIONS_MAX)] = 10
    words: Annotated[tuple[Misspelt, ...], msgspec.Meta(max_length=WORDS_MAX)] = ()
    like: Annotated[str, msgspec.Meta(max_length=ID_CHARS_MAX)] | None = None
