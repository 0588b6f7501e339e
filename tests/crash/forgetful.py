"""Feishu as a platform that remembers no client id, as many others are.

What may have arrived is not repeated under the same id there, but sent once more with a visible mark.
"""

from dataclasses import replace

from channels.feishu import SPEC as FEISHU

SPEC = replace(FEISHU, name="forgetful", idempotent_seconds=0)
