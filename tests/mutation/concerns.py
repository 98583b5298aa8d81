"""Which tests concern which modules that decide, or judge beside those that do: of the fast ones those that would
notice a mistake there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
HISTORIES = "tests/histories/test_history_files.py::test_history_gets_the_verdict_it_is_written_for"
GAPS = "tests/histories/test_history_files.py::test_explanations_about_an_object_without_name_leave_no_gap"


@dataclass(frozen=True, kw_only=True)
class Concern:
    """Some modules, and what is asked about them."""

    modules: tuple[str, ...]
    """Files, or folders with all that is in them."""
    histories: tuple[str, ...] = ()
    """Folders beneath `tests/histories`."""
    tests: tuple[str, ...] = ()
    """Quick ones, such as tests of units."""
    definitions: tuple[str, ...] = ()
    """Beneath `tests/properties`: what is compared with definitions in random histories."""

    def paths(self) -> list[Path]:
        found = []
        for module in self.modules:
            path = ROOT / module
            found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
        return [path for path in found if path.name != "meanings.py"]

    def arguments(self) -> list[str]:
        """Of pytest: the smallest histories first, for most mistakes show there."""
        files = [file for folder in self.histories for file in sorted((ROOT / "tests/histories" / folder).iterdir())]
        smallest = [f"{HISTORIES}[{file.parent.name}/{file.stem}]" for file in files if file.suffix == ".history"]
        others = [*self.tests, *(f"properties/{test}" for test in self.definitions)]
        return [*smallest, *(f"{GAPS}[{folder}]" for folder in self.histories), *(f"tests/{test}" for test in others)]

    def has(self, test: str) -> bool:
        """By the name that pytest gives it."""
        return test in self._named or test.partition("::")[0] in self._named

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(self.arguments())


_OF_TRANSACTIONS = ("list-append", "rw-register")

CONCERNS = (
    Concern(
        modules=("checkers/log",),
        histories=("log",),
        tests=(
            "unit/checkers/test_log_features.py",
            "unit/checkers/test_log_moves.py",
            "unit/checkers/test_data_at_risk.py",
            "unit/checkers/test_recovery.py",
        ),
        definitions=(
            "test_log_transactions_against_definition.py",
            "test_log_against_definitions.py",
            "test_steps_of_log_transactions.py",
            "test_excused_losses.py",
        ),
    ),
    Concern(
        modules=("checkers/multiset",),
        histories=("queue", "set", "unique-ids", "causal-reverse", "transactional"),
        tests=(
            "unit/checkers/test_queue_that_brings_out.py",
            "unit/checkers/test_set_losses.py",
        ),
        definitions=("test_checkers_against_definitions.py",),
    ),
    Concern(
        modules=("checkers/causal", "checkers/bank.py", "checkers/counter.py", "checkers/monotonic.py"),
        histories=("causal", "long-fork", "bank", "counter", "monotonic"),
        tests=("unit/checkers/test_bounds_of_checkers.py",),
        definitions=("test_checkers_against_definitions.py",),
    ),
    Concern(
        modules=("checkers/delay.py",),
        histories=("delay", "delayed"),
        tests=("unit/checkers/test_delay_of_spans.py",),
        definitions=("test_delay_against_definition.py",),
    ),
    Concern(
        modules=("checkers/pop.py", "checkers/pop_order.py"),
        histories=("pop",),
        tests=("unit/checkers/test_pop_counts.py",),
        definitions=("test_pop_against_definition.py",),
    ),
    Concern(
        modules=("checkers/consumption",),
        histories=("consumption",),
        tests=("unit/checkers/test_bounds_of_checkers.py", "unit/checkers/test_recovery.py"),
        definitions=("test_consumption_against_definition.py",),
    ),
    Concern(
        modules=("checkers/availability",),
        histories=("availability",),
        tests=("unit/checkers/test_bounds_of_checkers.py",),
        definitions=("test_availability_against_definition.py",),
    ),
    Concern(
        modules=("checkers/replication",),
        tests=("histories/test_node_event_files.py",),
        definitions=("test_cluster_against_definitions.py",),
    ),
    Concern(
        modules=(
            "checkers/linearizable/deciders",
            "checkers/linearizable/history",
            "checkers/linearizable/objects",
            "checkers/linearizable/registers",
            "checkers/linearizable/search",
            "checkers/linearizable/question.py",
            "checkers/linearizable/object_findings.py",
            "checkers/linearizable/searches.py",
        ),
        histories=("object", "register", "lock"),
        tests=(
            "unit/checkers/test_linearizable_objects.py",
            "unit/checkers/test_configurations.py",
            "unit/checkers/test_object_columns.py",
            "unit/checkers/test_object_parts.py",
            "unit/checkers/test_registers_of_integers.py",
            "command_line/test_contradicted_invocations.py",
            "histories/test_history_files.py::test_what_convicts_an_object_that_is_decided_convicts_it_alone",
        ),
        definitions=(
            "test_queues_against_brute_force.py",
            "test_collections_against_brute_force.py",
            "test_objects_against_brute_force.py",
            "test_depth_first_against_brute_force.py",
            "test_register_against_brute_force.py",
            "test_maps_against_brute_force.py",
            "test_contents_against_brute_force.py",
            "test_routing_of_contents.py",
            "test_routing_of_objects.py",
            "test_vast_registers.py",
            "test_deadlines_of_searches.py",
        ),
    ),
    Concern(
        modules=("checkers/transactions/elle", "checkers/transactions/history"),
        histories=(*_OF_TRANSACTIONS, "long-fork"),
        tests=(
            "unit/checkers/test_list_append.py",
            "unit/checkers/test_assumed_cycles.py",
            "histories/test_elle_cases.py",
        ),
        definitions=(
            "test_committed_rows.py",
            "test_list_append_against_definition.py",
            "test_registers_against_definition.py",
            "test_cycles_against_enumeration.py",
            "test_components_against_brute_force.py",
            "test_registers_however_split.py",
            "test_micro_rows.py",
            "test_assumed_certificates.py",
        ),
    ),
    Concern(
        modules=("checkers/transactions/isolation",),
        histories=_OF_TRANSACTIONS,
        tests=(
            "unit/checkers/test_cycles_of_precedence.py",
            "unit/checkers/test_explaining_orders.py",
            "unit/checkers/test_transaction_certificates.py",
            "unit/checkers/test_verified_histories.py",
            "histories/test_history_files.py::test_a_level_for_itself_gets_the_verdict_that_it_gets_among_all[causal]",
        ),
        definitions=(
            "test_smallest_histories_against_commit_orders.py",
            "test_weak_levels_against_commit_orders.py",
            "test_parallel_snapshot_against_definition.py",
            "test_complete_against_commit_orders.py",
            "test_cursor_stability_against_orders.py",
            "test_components_against_brute_force.py",
            "test_orders_of_stores.py",
            "test_certified_decisions.py",
            "test_transaction_models_against_commit_orders.py",
        ),
    ),
    Concern(
        modules=("checkers/kernels", "checkers/findings.py", "checkers/buckets.py"),
        histories=("log", "queue", "list-append", "rw-register", "register", "causal"),
        tests=("unit/checkers/test_packing.py", "unit/checkers/test_filling.py", "unit/checkers/test_columns.py"),
        definitions=("test_log_against_definitions.py",),
    ),
    Concern(
        modules=("checkers/transactions/verify",),
        tests=(
            "unit/checkers/test_transaction_certificates.py",
            "unit/checkers/test_verified_histories.py",
            "unit/checkers/test_assumed_cycles.py",
            "unit/checkers/test_forged_certificates.py",
        ),
        definitions=(
            "test_verifiers_refuse.py",
            "test_verification_of_certificates.py",
            "test_assumed_certificates.py",
            "test_certified_decisions.py::test_answers_are_certified_and_verified",
        ),
    ),
    Concern(
        modules=("checkers/linearizable/replay",),
        tests=("unit/checkers/test_replayed_orders.py",),
        definitions=("test_verifiers_refuse.py",),
    ),
    Concern(
        modules=("checkers/linearizable/evidence",),
        histories=("object", "register", "lock"),
        tests=("unit/checkers/test_surroundings.py", "unit/checkers/test_linearizable_objects.py"),
        definitions=("test_objects_against_brute_force.py", "test_routing_of_objects.py"),
    ),
    Concern(
        modules=("checkers/transactions/evidence",),
        histories=_OF_TRANSACTIONS,
        tests=(
            "unit/checkers/test_transaction_certificates.py",
            "unit/checkers/test_transaction_explanations.py",
            "unit/checkers/test_verified_histories.py",
            "unit/checkers/test_assumed_cycles.py",
        ),
        definitions=("test_certified_decisions.py", "test_assumed_certificates.py"),
    ),
    Concern(
        modules=(
            "checkers/evidence.py",
            "checkers/vacuity.py",
            "checkers/recovery.py",
            "checkers/liveness.py",
            "checkers/progress.py",
            "checkers/invariants.py",
            "checkers/repeats.py",
            "checkers/asked.py",
            "checkers/excuses.py",
            "checkers/verdict.py",
            "checkers/conjunction.py",
            "checkers/searching.py",
            "checkers/plan.py",
            "checkers/run.py",
        ),
        tests=(
            "unit/checkers/test_vacuity.py",
            "unit/checkers/test_recovery.py",
            "unit/checkers/test_liveness_checker.py",
            "unit/checkers/test_progress.py",
            "unit/checkers/test_invariants.py",
            "unit/checkers/test_verdict.py",
            "unit/checkers/test_searching.py",
            "unit/checkers/test_run.py",
            "unit/checkers/test_excuses.py",
            "unit/checkers/test_evidence.py",
            "unit/checkers/test_repeats.py",
            "unit/checkers/test_set_losses.py",
            "command_line/test_contradicted_invocations.py",
            "command_line/test_vacuous_passes.py",
        ),
        definitions=("test_excused_losses.py",),
    ),
)
