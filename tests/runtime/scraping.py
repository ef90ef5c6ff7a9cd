"""The text that Prometheus reads, as tests read it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

LABELS = ("query", "origin", "node", "kind")


def values(text: str) -> dict[str, dict[str, float]]:
    """Values by the name of their series, and by their labels in a row."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = " ".join(sample.labels[label] for label in LABELS if label in sample.labels)
            found.setdefault(sample.name, {})[labels] = sample.value
    return found
