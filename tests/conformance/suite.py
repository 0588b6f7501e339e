"""All rules: importing this module registers them."""

import tests.conformance.sections  # registers
from tests.conformance.rules import RULES, Need, Rule, chosen

__all__ = ["RULES", "Need", "Rule", "chosen", "tests"]
