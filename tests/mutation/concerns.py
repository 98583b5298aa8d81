"""Which tests would notice a mistake in which modules.

`CONCERNS` are of the modules that decide, or judge beside those that do, with fast tests alone: `make mutate` runs
them. `OTHERS` are of all other modules, and only say where to look. A module that some test imports by its name needs
no entry. The table of all modules, `tests/MODULES.md`, is made of both and of the tests' imports (`page`).
"""

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
    """Quick ones, such as tests of units. Among `OTHERS` any, and folders of them."""
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
            "unit/checkers/log/test_log_features.py",
            "unit/checkers/log/test_log_moves.py",
            "unit/checkers/log/test_data_at_risk.py",
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
        modules=tuple(
            f"checkers/elements/{name}.py" for name in ("rows", "queue", "order", "set", "unique_ids", "causal_reverse")
        ),
        histories=("queue", "set", "unique-ids", "causal-reverse", "transactional"),
        tests=(
            "unit/checkers/elements/test_queue_that_brings_out.py",
            "unit/checkers/elements/test_set_losses.py",
        ),
        definitions=("test_checkers_against_definitions.py",),
    ),
    Concern(
        modules=(
            "checkers/causal",
            "checkers/elements/long_fork.py",
            "checkers/elements/bank.py",
            "checkers/elements/counter.py",
            "checkers/elements/monotonic.py",
        ),
        histories=("causal", "long-fork", "bank", "counter", "monotonic"),
        tests=("unit/checkers/test_bounds_of_checkers.py",),
        definitions=("test_checkers_against_definitions.py",),
    ),
    Concern(
        modules=("checkers/elements/delay.py",),
        histories=("delay", "delayed"),
        tests=("unit/checkers/elements/test_delay_of_spans.py",),
        definitions=("test_delay_against_definition.py",),
    ),
    Concern(
        modules=("checkers/elements/pop.py", "checkers/elements/pop_order.py"),
        histories=("pop",),
        tests=("unit/checkers/elements/test_pop_counts.py",),
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
            "unit/checkers/linearizable/test_linearizable_objects.py",
            "unit/checkers/linearizable/test_configurations.py",
            "unit/checkers/linearizable/test_object_columns.py",
            "unit/checkers/linearizable/test_object_parts.py",
            "unit/checkers/linearizable/test_registers_of_integers.py",
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
            "test_deadlines_of_searches.py",
        ),
    ),
    Concern(
        modules=("checkers/transactions/elle", "checkers/transactions/history"),
        histories=(*_OF_TRANSACTIONS, "long-fork"),
        tests=(
            "unit/checkers/transactions/test_list_append.py",
            "unit/checkers/transactions/test_assumed_cycles.py",
            "histories/test_elle_cases.py",
        ),
        definitions=(
            "test_committed_rows.py",
            "test_list_append_against_definition.py",
            "test_registers_against_definition.py",
            "test_cycles_against_enumeration.py",
            "test_registers_however_split.py",
            "test_micro_rows.py",
            "test_assumed_certificates.py",
        ),
    ),
    Concern(
        modules=("checkers/transactions/orders",),
        histories=_OF_TRANSACTIONS,
        tests=(
            "unit/checkers/transactions/test_cycles_of_precedence.py",
            "unit/checkers/transactions/test_explaining_orders.py",
            "unit/checkers/transactions/test_transaction_certificates.py",
            "unit/checkers/transactions/test_verified_histories.py",
            "histories/test_history_files.py::test_a_level_for_itself_gets_the_verdict_that_it_gets_among_all[causal]",
        ),
        definitions=(
            "test_smallest_histories_against_commit_orders.py",
            "test_weak_levels_against_commit_orders.py",
            "test_parallel_snapshot_against_definition.py",
            "test_complete_against_commit_orders.py",
            "test_cursor_stability_against_orders.py",
            "test_orders_of_stores.py",
            "test_certified_decisions.py",
            "test_transaction_models_against_commit_orders.py",
        ),
    ),
    Concern(
        modules=("checkers/kernels", "checkers/api/findings.py", "checkers/api/tallies.py", "checkers/buckets.py"),
        histories=("log", "queue", "list-append", "rw-register", "register", "causal"),
        tests=(
            "unit/checkers/kernels/test_packing.py",
            "unit/checkers/kernels/test_filling.py",
            "unit/checkers/kernels/test_columns.py",
        ),
        definitions=("test_log_against_definitions.py",),
    ),
    Concern(
        modules=("checkers/transactions/verify",),
        tests=(
            "unit/checkers/transactions/test_transaction_certificates.py",
            "unit/checkers/transactions/test_verified_histories.py",
            "unit/checkers/transactions/test_assumed_cycles.py",
            "unit/checkers/transactions/test_forged_certificates.py",
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
        tests=("unit/checkers/linearizable/test_replayed_orders.py",),
        definitions=("test_verifiers_refuse.py",),
    ),
    Concern(
        modules=("checkers/linearizable/evidence",),
        histories=("object", "register", "lock"),
        tests=(
            "unit/checkers/linearizable/test_surroundings.py",
            "unit/checkers/linearizable/test_linearizable_objects.py",
        ),
        definitions=("test_objects_against_brute_force.py", "test_routing_of_objects.py"),
    ),
    Concern(
        modules=("checkers/transactions/evidence",),
        histories=_OF_TRANSACTIONS,
        tests=(
            "unit/checkers/transactions/test_transaction_certificates.py",
            "unit/checkers/transactions/test_transaction_explanations.py",
            "unit/checkers/transactions/test_verified_histories.py",
            "unit/checkers/transactions/test_assumed_cycles.py",
        ),
        definitions=("test_certified_decisions.py", "test_assumed_certificates.py"),
    ),
    Concern(
        modules=(
            "checkers/api/evidence.py",
            "checkers/vacuity.py",
            "checkers/recovery.py",
            "checkers/liveness.py",
            "checkers/progress.py",
            "checkers/invariants.py",
            "checkers/completions.py",
            "checkers/asked.py",
            "checkers/api/excuses.py",
            "checkers/api/verdict.py",
            "checkers/all_of.py",
            "checkers/search_budget.py",
            "checkers/api/plan.py",
            "checkers/run.py",
        ),
        tests=(
            "unit/checkers/test_vacuity.py",
            "unit/checkers/test_recovery.py",
            "unit/checkers/test_liveness_checker.py",
            "unit/checkers/test_progress.py",
            "unit/checkers/test_invariants.py",
            "unit/checkers/api/test_verdict.py",
            "unit/checkers/test_searching.py",
            "unit/checkers/test_run.py",
            "unit/checkers/api/test_excuses.py",
            "unit/checkers/api/test_evidence.py",
            "unit/checkers/test_repeats.py",
            "unit/checkers/elements/test_set_losses.py",
            "command_line/test_contradicted_invocations.py",
            "command_line/test_vacuous_passes.py",
        ),
        definitions=("test_excused_losses.py",),
    ),
)

OTHERS = (
    Concern(
        modules=(
            "stormproof/__init__.py",
            "stormproof/__main__.py",
            "stormproof/command.py",
            "stormproof/packages.py",
            "stormproof/rocketmq_admin.py",
        ),
        tests=("unit/stormproof/test_public_names.py",),
    ),
    Concern(
        modules=("stormproof/skeletons",),
        tests=("command_line/test_new_system.py", "command_line/test_your_own_system_page.py"),
    ),
    # The harness: what a run is made of.
    Concern(
        modules=("harness/operation.py", "harness/workload.py", "harness/client.py", "harness/progress.py"),
        tests=(
            "unit/harness/test_interpreter.py",
            "unit/harness/record/test_history.py",
            "unit/workloads/test_generators.py",
        ),
    ),
    Concern(
        modules=("harness/system.py",),
        tests=("unit/nemesis/test_packages.py", "command_line/test_own_system.py"),
    ),
    Concern(
        modules=("harness/run.py",),
        tests=(
            "command_line/test_killed_harness.py",
            "simulation/test_outages_of_a_run.py",
            "simulation/test_what_stays_stuck.py",
        ),
    ),
    Concern(modules=("harness/strand_client.py",), tests=("simulation/test_combined_workloads.py",)),
    Concern(modules=("harness/client_names.py",), tests=("unit/nemesis/test_faults_on_clients.py",)),
    Concern(modules=("harness/narrator.py",), tests=("explore/test_storm_files.py",)),
    Concern(
        modules=("harness/errors.py",),
        tests=("command_line/test_bad_input.py", "command_line/test_failures_beside_the_verdict.py"),
    ),
    Concern(
        modules=("harness/seed.py", "harness/trace.py"),
        tests=("simulation/test_determinism_of_runs.py", "simulation/test_determinism_of_the_simulator.py"),
    ),
    Concern(
        modules=("harness/toml_file.py",),
        tests=("unit/stormproof/session/test_suite_file.py", "unit/harness/environments/ssh/test_inventory.py"),
    ),
    Concern(
        modules=("harness/generator",),
        tests=("unit/harness/generator/test_generator_combinators.py", "unit/harness/generator/test_strands.py"),
        definitions=("test_history_properties.py",),
    ),
    Concern(
        modules=("harness/compiled",),
        tests=("unit/harness/compiled", "unit/stormproof/cli/test_compiling_announced.py"),
    ),
    Concern(modules=("harness/lifetime",), tests=("unit/harness/lifetime", "interruptions")),
    Concern(
        modules=("harness/record",),
        tests=("unit/harness/record/test_run_record.py", "unit/harness/record/test_run_directory.py"),
    ),
    Concern(
        modules=("harness/record/facts.py", "harness/record/fault_row.py"),
        tests=("unit/harness/record/test_fault_log.py", "unit/harness/record/test_steady_spans.py"),
    ),
    Concern(
        modules=("harness/record/node_events.py",),
        tests=("histories/test_node_event_files.py", "unit/harness/test_reporting.py"),
    ),
    Concern(
        modules=("harness/record/history",),
        tests=("unit/harness/record/test_history.py", "command_line/test_torn_exports.py"),
        definitions=("test_history_properties.py", "test_hostile_rows.py"),
    ),
    # The harness: the command and what it puts together.
    Concern(
        modules=("stormproof/cli",),
        tests=("unit/stormproof/cli/test_cli_commands.py", "command_line/test_bad_inputs_table.py"),
    ),
    Concern(
        modules=(
            "stormproof/cli/check.py",
            "stormproof/cli/check_options.py",
            "stormproof/cli/checking.py",
        ),
        tests=(
            "command_line/test_check_histories.py",
            "command_line/test_check_of_runs.py",
            "command_line/test_many_histories.py",
            "command_line/test_streams_as_input.py",
            "command_line/test_bad_inputs_table.py",
        ),
    ),
    Concern(modules=("stormproof/cli/bisect.py",), tests=("explore/test_bisecting.py",)),
    Concern(modules=("stormproof/cli/candidates.py",), tests=("command_line/test_completion.py",)),
    Concern(modules=("stormproof/cli/cleanup.py",), tests=("docker/test_docker_life.py", "ssh/test_ssh_life.py")),
    Concern(modules=("stormproof/cli/compared.py",), tests=("command_line/test_jepsen_tests.py",)),
    Concern(modules=("stormproof/cli/explore.py",), tests=("command_line/test_explore.py",)),
    Concern(
        modules=("stormproof/cli/export.py",),
        tests=("histories/test_exported_histories.py", "command_line/test_torn_exports.py"),
    ),
    Concern(modules=("stormproof/cli/new.py",), tests=("command_line/test_new_system.py",)),
    Concern(
        modules=("stormproof/cli/replay_storm.py",),
        tests=("explore/test_storm_files.py", "command_line/test_suites_and_replays.py"),
    ),
    Concern(
        modules=("stormproof/cli/suite_jobs.py", "stormproof/cli/suite_result.py"),
        tests=(
            "command_line/test_suites_and_replays.py",
            "unit/stormproof/cli/test_exit_code.py",
            "unit/results/test_junit.py",
        ),
    ),
    Concern(
        modules=("stormproof/cli/usage.py",),
        tests=("unit/stormproof/cli/test_empty_values.py", "unit/stormproof/cli/test_nearest_names.py"),
    ),
    Concern(modules=("stormproof/cli/verify.py",), tests=("command_line/test_verify.py",)),
    Concern(
        modules=("stormproof/session",),
        tests=("command_line/test_check_of_runs.py", "unit/stormproof/cli/test_cli_commands.py"),
    ),
    Concern(
        modules=("stormproof/session/foreign_history.py",),
        tests=(
            "command_line/test_streams_as_input.py",
            "command_line/test_foreign_input.py",
            "command_line/test_jepsen_tests.py",
        ),
    ),
    Concern(
        modules=("stormproof/session/judge_history.py", "stormproof/session/check_spec.py"),
        tests=("histories/test_foreign_histories.py", "command_line/test_check_histories.py"),
    ),
    Concern(modules=("stormproof/session/null_reads.py",), tests=("command_line/test_jepsen_tests.py",)),
    Concern(
        modules=("stormproof/session/output_file.py",),
        tests=("command_line/test_output_files.py", "command_line/test_places_that_cannot_be_written.py"),
    ),
    Concern(modules=("stormproof/session/record_trace.py",), tests=("simulation/test_determinism_of_runs.py",)),
    Concern(
        modules=("stormproof/session/registry.py",),
        tests=(
            "command_line/test_own_system.py",
            "command_line/test_own_model.py",
            "unit/stormproof/cli/test_nearest_names.py",
        ),
    ),
    Concern(modules=("stormproof/search",), tests=("explore/test_search.py", "explore/test_drawn_storms.py")),
    Concern(modules=("stormproof/search/revision_runner.py",), tests=("explore/test_bisecting.py",)),
    Concern(
        modules=("stormproof/search/storm_page.py", "stormproof/search/messages.py"),
        tests=("unit/results/test_storm_pages.py", "explore/test_storm_files.py"),
    ),
    # The harness: histories of others.
    Concern(
        modules=("harness/jepsen",),
        tests=("unit/harness/jepsen", "histories/test_foreign_histories.py", "command_line/test_foreign_input.py"),
        definitions=("test_said_in_other_formats.py",),
    ),
    Concern(
        modules=("harness/jepsen/archive.py", "harness/jepsen/test_directory.py"),
        tests=("command_line/test_jepsen_tests.py",),
    ),
    Concern(modules=("harness/jepsen/operation_columns.py",), tests=("unit/harness/jepsen/test_operation_columns.py",)),
    Concern(modules=("harness/jepsen/textual.py",), tests=("unit/harness/jepsen/test_logs.py",)),
    Concern(modules=("harness/jepsen/log_parts.py",), tests=("unit/harness/jepsen/test_log_parts.py",)),
    Concern(
        modules=("harness/notations",),
        tests=("unit/harness/notations/test_notations_of_checkers.py", "command_line/test_other_notations.py"),
    ),
    # The harness: where nodes run.
    Concern(modules=("harness/environments",), tests=("conformance/test_environments.py",)),
    Concern(
        modules=("harness/environments/interruptible.py",),
        tests=("unit/harness/lifetime/test_interruption.py", "docker/test_docker_life.py"),
    ),
    Concern(
        modules=("harness/environments/disk",),
        tests=("conformance/test_disks.py", "unit/harness/environments/simulated/test_simulated_disk.py"),
    ),
    Concern(
        modules=("harness/environments/docker",),
        tests=("unit/harness/environments/docker", "docker", "conformance/test_environments.py"),
    ),
    Concern(
        modules=("harness/environments/fuse",),
        tests=(
            "unit/harness/environments/fuse/test_mounted_volume.py",
            "unit/harness/environments",
            "conformance/test_disks.py",
        ),
    ),
    Concern(
        modules=("harness/environments/remote",),
        tests=(
            "unit/harness/environments/remote",
            "docker/test_docker_faults.py",
            "ssh/test_ssh_life.py",
            "conformance/test_environments.py",
        ),
    ),
    Concern(
        modules=("harness/environments/remote/links.py",),
        tests=("docker/test_docker_links.py", "docker/test_docker_faults.py"),
    ),
    Concern(modules=("harness/environments/remote/impaired_disks.py",), tests=("docker/test_docker_disks.py",)),
    Concern(
        modules=("harness/environments/remote/struck_processes.py",),
        tests=("docker/test_docker_named_processes.py",),
    ),
    Concern(
        modules=("harness/environments/simulated",),
        tests=(
            "unit/harness/environments/simulated",
            "conformance/test_environments.py",
            "simulation/test_determinism_of_the_simulator.py",
        ),
    ),
    Concern(modules=("harness/environments/ssh",), tests=("unit/harness/environments/ssh", "ssh")),
    # Faults.
    Concern(
        modules=("nemesis",),
        tests=("unit/nemesis/test_grammar.py", "unit/nemesis/test_nemesis.py", "unit/nemesis/test_schedule.py"),
    ),
    Concern(
        modules=("nemesis/asking.py", "nemesis/pending_recoveries.py"),
        tests=("unit/nemesis/test_membership.py", "unit/nemesis/test_administration.py"),
    ),
    Concern(modules=("nemesis/periodic.py",), tests=("unit/nemesis/test_nemesis.py", "unit/nemesis/test_sentences.py")),
    Concern(modules=("nemesis/trigger_grammar.py",), tests=("unit/nemesis/test_triggers.py",)),
    # Checkers that `make mutate` leaves alone.
    Concern(
        modules=("checkers/certified.py",),
        tests=("command_line/test_verify.py", "unit/checkers/linearizable/test_replayed_orders.py"),
        definitions=("test_objects_against_brute_force.py",),
    ),
    Concern(
        modules=("checkers/linearizable",),
        histories=("object", "register", "lock"),
        tests=(
            "unit/checkers/linearizable/test_linearizable_objects.py",
            "unit/checkers/linearizable/test_object_columns.py",
            "command_line/test_own_model.py",
        ),
        definitions=("test_objects_against_brute_force.py",),
    ),
    Concern(
        modules=("checkers/transactions",),
        histories=_OF_TRANSACTIONS,
        tests=(
            "command_line/test_check_transactions.py",
            "unit/checkers/transactions/test_transaction_explanations.py",
        ),
        definitions=("test_transaction_models_against_commit_orders.py",),
    ),
    Concern(
        modules=("checkers/spark",),
        tests=("unit/checkers/spark/test_spark_stages.py", "unit/checkers/spark/test_spark_gateway.py"),
        definitions=("test_engines_agree.py", "test_masters_agree.py", "test_lost_files.py"),
    ),
    Concern(modules=("checkers/spark/lay_out_classes.py",), tests=("unit/checkers/spark/test_class_archive.py",)),
    # Workloads and adapters.
    Concern(
        modules=("workloads",), tests=("unit/workloads/test_generators.py", "rocketmq/mutants/test_planted_bugs.py")
    ),
    Concern(modules=("workloads/combined.py",), tests=("simulation/test_combined_workloads.py",)),
    Concern(
        modules=("workloads/systems/etcd",), tests=("unit/workloads/systems/etcd", "systems/test_etcd_and_queues.py")
    ),
    Concern(
        modules=("workloads/systems/mariadb",),
        tests=(
            "unit/workloads/systems/mariadb/test_galera_member.py",
            "unit/workloads/systems/sql/test_sql_promises.py",
            "systems/test_mariadb.py",
        ),
    ),
    Concern(
        modules=("workloads/systems/nats",), tests=("unit/workloads/systems/nats", "systems/test_etcd_and_queues.py")
    ),
    Concern(
        modules=("workloads/systems/postgresql",),
        tests=(
            "unit/workloads/systems/postgresql/test_patroni.py",
            "unit/workloads/systems/sql/test_sql_promises.py",
            "systems/test_postgresql.py",
        ),
    ),
    Concern(
        modules=("workloads/systems/rabbitmq",),
        tests=("unit/workloads/systems/rabbitmq", "systems/test_etcd_and_queues.py"),
    ),
    Concern(modules=("workloads/systems/redis",), tests=("unit/workloads/systems/redis", "systems/test_redis.py")),
    Concern(
        modules=("workloads/systems/sql",),
        tests=("unit/workloads/systems/sql", "systems/test_postgresql.py", "systems/test_mariadb.py"),
    ),
    Concern(
        modules=("workloads/systems/sql/user.py",),
        tests=("systems/test_postgresql.py", "systems/test_mariadb.py"),
    ),
    Concern(
        modules=("workloads/systems/zookeeper",),
        tests=("unit/workloads/systems/zookeeper", "systems/test_etcd_and_queues.py"),
    ),
    Concern(
        modules=("workloads/systems/rocketmq",),
        tests=(
            "rocketmq/unit/adapter/test_rocketmq_deployments.py",
            "simulation/test_deployments.py",
        ),
    ),
    Concern(
        modules=("workloads/systems/rocketmq/admin",),
        tests=("command_line/test_rocketmq_admin.py", "rocketmq/unit/adapter/test_admin_report.py"),
    ),
    Concern(
        modules=("workloads/systems/rocketmq/clients",),
        tests=(
            "rocketmq/mutants/test_planted_bugs.py",
            "rocketmq/mutants/test_border_mutants.py",
            "simulation/test_deployments.py",
        ),
    ),
    Concern(
        modules=("workloads/systems/rocketmq/clients/public",),
        tests=("conformance/test_public_client.py", "docker/test_public_client_storm.py"),
    ),
    Concern(
        modules=(
            "workloads/systems/rocketmq/classic_loss.py",
            "workloads/systems/rocketmq/loss_tables.py",
            "workloads/systems/rocketmq/expiry.py",
        ),
        tests=(
            "rocketmq/unit/adapter/test_legal_loss.py",
            "rocketmq/unit/adapter/test_classic_loss.py",
            "rocketmq/mutants/test_excuses_hide_no_bug.py",
        ),
    ),
    Concern(modules=("workloads/systems/rocketmq/search_space.py",), tests=("explore/test_drawn_storms.py",)),
    Concern(
        modules=("workloads/systems/rocketmq/administration.py",),
        tests=("simulation/test_administration_in_storms.py",),
    ),
    Concern(
        modules=("workloads/systems/rocketmq/original.py",), tests=("rocketmq/unit/adapter/test_rocketmq_original.py",)
    ),
    Concern(
        modules=("workloads/systems/rocketmq/static_readiness.py",),
        tests=("rocketmq/mutants/test_planted_bugs.py",),
    ),
    # The system that comes with the project.
    Concern(
        modules=("system_under_test/raft",),
        tests=("unit/system_under_test/raft/test_raft_transcripts.py", "unit/system_under_test/raft"),
        definitions=(
            "test_raft_state_machine.py",
            "test_raft_properties.py",
            "test_raft_log_properties.py",
            "test_raft_storage_properties.py",
        ),
    ),
    Concern(
        modules=("system_under_test/replicated",),
        tests=(
            "unit/system_under_test/replicated",
            "simulation/test_controllers_in_a_storm.py",
            "rocketmq/mutants/test_controller_mutants.py",
        ),
    ),
    Concern(
        modules=("system_under_test/metadata",),
        tests=("unit/system_under_test/metadata", "simulation/test_metadata_in_a_storm.py"),
        definitions=("test_malformed_inputs.py",),
    ),
    Concern(
        modules=("system_under_test/remoting",),
        tests=("unit/system_under_test/remoting",),
        definitions=("test_remoting_under_storm.py", "test_malformed_inputs.py"),
    ),
    Concern(modules=("system_under_test/grpc",), tests=("unit/system_under_test/grpc",)),
    Concern(
        modules=("system_under_test/node",),
        tests=(
            "unit/system_under_test/node",
            "rocketmq/unit/test_node.py",
            "rocketmq/mutants/test_overridden_roles.py",
        ),
    ),
    Concern(
        modules=("system_under_test/runtime",), tests=("unit/system_under_test/runtime", "conformance/test_hosts.py")
    ),
    Concern(
        modules=("system_under_test/runtime/rewrite.py",),
        tests=("unit/system_under_test/storage/test_recovery_properties.py",),
        definitions=("test_raft_storage_properties.py",),
    ),
    Concern(
        modules=("system_under_test/storage",),
        tests=(
            "unit/system_under_test/storage/test_message_store.py",
            "unit/system_under_test/storage/test_recovery_properties.py",
            "rocketmq/scenarios/test_expired_files.py",
        ),
    ),
    Concern(
        modules=("system_under_test/dledger/entry_files.py", "system_under_test/dledger/index_files.py"),
        tests=(
            "unit/system_under_test/dledger/test_file_store.py",
            "unit/system_under_test/dledger/test_file_store_properties.py",
        ),
    ),
    Concern(
        modules=tuple(
            f"system_under_test/dledger/{name}"
            for name in ("driver.py", "entry.py", "node.py", "parts.py", "remote_peers.py", "reports.py")
        ),
        tests=(
            "unit/system_under_test/dledger/test_dledger_node.py",
            "unit/system_under_test/dledger/test_dledger_stories.py",
        ),
    ),
    Concern(
        modules=tuple(
            f"system_under_test/dledger/{name}"
            for name in (
                *("core.py", "dispatcher.py", "election.py", "event.py", "handler.py", "message.py", "quorum.py"),
                *("state.py", "transfer.py"),
            )
        ),
        tests=(
            "unit/system_under_test/dledger/test_dledger_transcripts.py",
            "unit/system_under_test/dledger/test_dledger_cluster.py",
        ),
    ),
    Concern(
        modules=("system_under_test/bookkeeper/ledger/bookies.py", "system_under_test/bookkeeper/ledger/reports.py"),
        tests=("unit/system_under_test/bookkeeper/ledger/test_ledger_driver.py",),
    ),
    Concern(
        modules=("system_under_test/bookkeeper/entry.py",),
        tests=("unit/system_under_test/bookkeeper/test_bookie_records.py",),
    ),
    Concern(
        modules=tuple(
            f"system_under_test/bookkeeper/ledger/{name}"
            for name in (
                "event.py",
                "pending.py",
                "recovery.py",
                "settlement.py",
                "spread.py",
                "suspects.py",
                "tally.py",
                "writer.py",
            )
        ),
        tests=tuple(
            f"unit/system_under_test/bookkeeper/ledger/test_ledger_{name}.py"
            for name in ("transcripts", "reading", "world")
        ),
    ),
    *(
        Concern(
            modules=(f"system_under_test/bookkeeper/mutants/{name}.py",),
            tests=("unit/system_under_test/bookkeeper/ledger/test_ledger_mutants.py",),
        )
        for name in (
            *("close_without_cas", "corrupt_is_absent", "deferred_failure", "ensemble_overtaken", "fenced_is_refused"),
            *("lac_is_lap", "one_no_is_enough", "recover_from_zero", "recovery_read_unfenced", "write_set_kept"),
        )
    ),
    Concern(modules=("system_under_test/cmq/mutants",), tests=("unit/system_under_test/cmq/test_cmq_mutants.py",)),
    Concern(
        modules=tuple(
            f"system_under_test/bookkeeper/repair/{name}.py"
            for name in ("assembly", "config", "driver", "reports", "rounds")
        ),
        tests=("unit/system_under_test/bookkeeper/repair/test_repair_cluster.py",),
    ),
    Concern(
        modules=tuple(f"system_under_test/bookkeeper/repair/{name}.py" for name in ("copying", "look", "round")),
        tests=(
            "unit/system_under_test/bookkeeper/repair/test_repair_transcripts.py",
            "unit/system_under_test/bookkeeper/repair/test_repair_properties.py",
        ),
    ),
    Concern(
        modules=tuple(
            f"system_under_test/bookkeeper/mutants/{name}.py"
            for name in ("ensemble_before_copy", "fragment_wide_check")
        ),
        tests=("unit/system_under_test/bookkeeper/repair/test_repair_transcripts.py",),
    ),
    Concern(
        modules=(
            *(
                f"system_under_test/bookkeeper/partition/{name}.py"
                for name in ("broker", "partition", "reading", "reports")
            ),
            "system_under_test/bookkeeper/node.py",
            "workloads/systems/bookkeeper/client.py",
            "workloads/systems/bookkeeper/nodes.py",
        ),
        tests=("simulation/test_bookkeeper_in_storms.py",),
    ),
    Concern(
        modules=tuple(
            f"system_under_test/cmq/{name}.py" for name in ("group", "membership", "node", "parts", "routing", "spread")
        ),
        tests=("unit/system_under_test/cmq/test_cmq_nodes.py",),
    ),
    Concern(
        modules=("workloads/systems/bookkeeper/entry_losses.py", "workloads/systems/bookkeeper/legal_loss.py"),
        tests=(
            "unit/workloads/systems/bookkeeper/test_entry_losses.py",
            "unit/workloads/systems/bookkeeper/test_bookkeeper_adapter.py",
        ),
    ),
    Concern(
        modules=("system_under_test/dledger/mutants",),
        tests=("unit/system_under_test/dledger/test_dledger_mutants.py",),
    ),
    Concern(
        modules=tuple(
            f"system_under_test/bookkeeper/bookie/{name}.py" for name in ("config", "message", "reports", "store")
        ),
        tests=(
            "unit/system_under_test/bookkeeper/test_bookie.py",
            "unit/system_under_test/bookkeeper/test_bookie_properties.py",
        ),
    ),
    Concern(
        modules=("system_under_test/bookkeeper/bookie/service.py",),
        tests=("unit/system_under_test/bookkeeper/test_bookie_service.py",),
    ),
    Concern(
        modules=tuple(
            f"system_under_test/bookkeeper/mutants/{name}.py"
            for name in ("digest_without_id", "fence_not_journaled", "fence_race", "no_limbo", "replacement_unfenced")
        ),
        tests=("unit/system_under_test/bookkeeper/test_bookie_mutants.py",),
    ),
    Concern(
        modules=("harness/dated_lines.py",),
        tests=(
            "rocketmq/unit/adapter/test_original_events.py",
            "unit/workloads/systems/dledger/test_dledger_original_reporting.py",
        ),
    ),
    Concern(modules=("system_under_test/storage/flush.py",), tests=("unit/system_under_test/storage/test_flush.py",)),
    Concern(
        modules=("system_under_test/storage/forgotten_topics.py",),
        tests=("unit/system_under_test/storage/test_forgotten_topics.py",),
    ),
    Concern(
        modules=("system_under_test/storage/log_beginning.py",),
        tests=("rocketmq/scenarios/test_expired_beginnings.py", "rocketmq/scenarios/test_expired_files.py"),
    ),
    Concern(modules=("system_under_test/storage/lookups.py",), tests=("rocketmq/scenarios/test_queries.py",)),
    Concern(
        modules=("system_under_test/storage/epoch_file.py",),
        tests=(
            "rocketmq/scenarios/test_epoch_truncation.py",
            "unit/system_under_test/storage/test_epochs_without_bytes.py",
        ),
        definitions=("test_truncation_point.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq",),
        tests=(
            "rocketmq/unit",
            "rocketmq/scenarios/test_public_transcripts.py",
            "rocketmq/scenarios/test_compatibility.py",
        ),
    ),
    Concern(
        modules=("system_under_test/rocketmq/recall_handle.py",),
        tests=("rocketmq/scenarios/test_proxy.py",),
        definitions=("test_malformed_inputs.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/consumer_protocol.py",),
        tests=("rocketmq/scenarios/test_consumer_groups.py", "rocketmq/scenarios/test_public_transcripts.py"),
    ),
    Concern(modules=("system_under_test/rocketmq/mutants",), tests=("rocketmq/mutants",)),
    Concern(
        modules=("system_under_test/rocketmq/broker",),
        tests=("rocketmq/unit/broker", "rocketmq/unit/test_node.py", "rocketmq/scenarios/test_controller_mode.py"),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/topics/administration.py",),
        tests=("rocketmq/scenarios/test_topics.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/consuming/assignment.py",),
        tests=("rocketmq/scenarios/test_assignment.py",),
    ),
    Concern(
        modules=(
            "system_under_test/rocketmq/broker/consuming/consumer_progress.py",
            "system_under_test/rocketmq/broker/consuming/locking.py",
            "system_under_test/rocketmq/broker/consuming/membership.py",
            "system_under_test/rocketmq/broker/consuming/offset_reset.py",
        ),
        tests=("rocketmq/scenarios/test_consumer_groups.py", "rocketmq/mutants/test_consumer_group_mutants.py"),
    ),
    Concern(
        modules=(
            "system_under_test/rocketmq/broker/delayed/delivery.py",
            "system_under_test/rocketmq/broker/delayed/delay_placement.py",
        ),
        tests=(
            "rocketmq/scenarios/test_delayed_messages.py",
            "rocketmq/scenarios/test_timed_messages.py",
            "rocketmq/mutants/test_waiting_mutants.py",
        ),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/consuming/filtering.py",),
        tests=("rocketmq/scenarios/test_filtered_pulls.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/ha/log_beginnings.py",),
        tests=("rocketmq/scenarios/test_expired_beginnings.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/topics/logic_queues.py",),
        tests=("rocketmq/scenarios/test_static_topics.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/pop/popping.py",), tests=("rocketmq/scenarios/test_popping.py",)
    ),
    Concern(modules=("system_under_test/rocketmq/broker/querying.py",), tests=("rocketmq/scenarios/test_queries.py",)),
    Concern(
        modules=(
            "system_under_test/rocketmq/broker/consuming/replicas.py",
            "system_under_test/rocketmq/broker/topics/topic_routes.py",
        ),
        tests=("rocketmq/unit/nameserver", "rocketmq/scenarios/test_reads_at_slaves.py"),
    ),
    Concern(
        modules=(
            "system_under_test/rocketmq/broker/controller_mode/replicas_manager.py",
            "system_under_test/rocketmq/broker/controller_mode/identity.py",
        ),
        tests=("rocketmq/scenarios/test_controller_mode.py", "rocketmq/mutants/test_overridden_roles.py"),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/controller_mode/isr_manager.py",),
        tests=(
            "rocketmq/mutants/test_overridden_roles.py",
            "rocketmq/scenarios/test_controller_mode.py",
            "rocketmq/properties/test_sync_state_set_machine.py",
        ),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/sending.py",),
        tests=("rocketmq/scenarios/test_messages_at_borders.py", "rocketmq/scenarios/test_broker_edges.py"),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/classic",),
        tests=(
            "rocketmq/scenarios/test_classic_mode.py",
            "rocketmq/scenarios/test_classic_expiry.py",
            "rocketmq/mutants/test_classic_mutants.py",
        ),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/ha",),
        tests=(
            "rocketmq/scenarios/test_controller_mode.py",
            "rocketmq/scenarios/test_epoch_truncation.py",
            "rocketmq/mutants/test_overridden_replication.py",
        ),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/ha/batch_push.py",),
        tests=("rocketmq/scenarios/test_batch_push.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/broker/pop",),
        tests=(
            "rocketmq/scenarios/test_popping.py",
            "rocketmq/scenarios/test_popping_in_order.py",
            "rocketmq/mutants/test_pop_mutants.py",
            "rocketmq/properties/test_pop_ledger.py",
        ),
    ),
    Concern(
        modules=("system_under_test/rocketmq/client",),
        tests=("rocketmq/unit/client/test_message_client.py", "rocketmq/scenarios/test_public_answers.py"),
    ),
    Concern(
        modules=(
            "system_under_test/rocketmq/client/logic_queue_client.py",
            "system_under_test/rocketmq/client/static_topic_client.py",
        ),
        tests=("rocketmq/scenarios/test_static_topics.py", "rocketmq/unit/static_topic/test_moving_queues.py"),
    ),
    Concern(
        modules=("system_under_test/rocketmq/client/replica_choice.py",),
        tests=("rocketmq/scenarios/test_reads_at_slaves.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/client/consumer",),
        tests=("rocketmq/scenarios/test_consumer_groups.py", "rocketmq/scenarios/test_assignment.py"),
    ),
    Concern(
        modules=("system_under_test/rocketmq/controller",),
        tests=(
            "rocketmq/unit/controller",
            "rocketmq/scenarios/test_controller_scenarios.py",
            "rocketmq/scenarios/test_controller_membership.py",
            "rocketmq/mutants/test_controller_mutants.py",
        ),
    ),
    Concern(
        modules=("system_under_test/replicated/shared_port.py",),
        tests=("rocketmq/scenarios/test_controller_deployments.py",),
    ),
    Concern(
        modules=("system_under_test/rocketmq/filter",),
        tests=("rocketmq/unit/filter/test_sql.py", "rocketmq/properties/test_sql_filter_against_definition.py"),
    ),
    Concern(
        modules=("system_under_test/rocketmq/nameserver",),
        tests=("rocketmq/unit/nameserver", "rocketmq/scenarios/test_compatibility.py"),
    ),
    Concern(
        modules=("system_under_test/rocketmq/proxy",),
        tests=(
            "rocketmq/scenarios/test_proxy.py",
            "rocketmq/scenarios/test_proxy_receiving.py",
            "rocketmq/scenarios/test_proxy_transactions.py",
        ),
    ),
    Concern(
        modules=("system_under_test/rocketmq/static_topic",),
        tests=("rocketmq/unit/static_topic", "rocketmq/scenarios/test_static_topics.py"),
    ),
    # Pages and files of results.
    Concern(
        modules=("results",),
        tests=("unit/results/test_verdict_file.py", "unit/results/test_output.py", "unit/results/test_junit.py"),
    ),
    Concern(
        modules=("results/report",),
        tests=("unit/results/test_report.py", "unit/results/test_page_of_a_checked_history.py"),
    ),
    Concern(modules=("results/lamport",), tests=("unit/results/test_storm_pages.py",)),
)
