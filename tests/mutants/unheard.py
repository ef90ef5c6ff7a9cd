"""Bugs in what is known of acks: whether a sender has heard them."""

from __future__ import annotations

from rove.cli.mutants import Mutant

UNHEARD = "tests/data/link/test_unheard.py"
ENDED = "tests/control/members/test_ended.py"

HEARD = (
    Mutant(
        "a window computes a batch before its ack was heard",
        "data/fragment/intake.py",
        "if seq > expected or seq in unconfirmed:",
        "if seq > expected:",
        test=f"{UNHEARD}::test_a_batch_is_computed_when_its_sender_has_heard_the_ack",
    ),
    Mutant(
        "a batch that comes again is acked before what was made of it is safe",
        "data/fragment/entrance.py",
        "            if running.pipeline.duplicates > before:\n",
        "            if running.pipeline.duplicates < before:\n",
        test=f"{UNHEARD}::test_a_batch_that_comes_again_is_not_acked_before_what_was_made_of_it_is_safe",
    ),
    Mutant(
        "a sender that is asked for its word says nothing",
        "data/link/link.py",
        "if tell else pumped",
        "if tell and pumped else pumped",
        test=f"{UNHEARD}::test_a_sender_that_is_asked_answers_at_once",
    ),
    Mutant(
        "a window computes again what an earlier start of its node has computed to the end",
        "data/fragment/intake.py",
        "        if spans is None or minus((header.seq, header.through + 1), spans):\n",
        "        if True:\n",
        test=f"{UNHEARD}::test_what_an_earlier_start_has_computed_to_the_end_is_not_computed_again",
    ),
    Mutant(
        "a batch is left out if an earlier start has computed a part of it",
        "data/fragment/intake.py",
        "        if spans is None or minus((header.seq, header.through + 1), spans):\n",
        "        if spans is None:\n",
        test=f"{UNHEARD}::test_what_an_earlier_start_has_computed_to_the_end_is_not_computed_again",
    ),
    Mutant(
        "a new start of a node is not told what earlier ones have computed",
        "control/coordinator.py",
        "                order.counted[query.id] = self.membership.ended.counted(node, query.id)\n",
        "",
        test=f"{ENDED}::test_a_node_without_a_disk_that_starts_anew_is_told_what_its_earlier_start_has_counted",
    ),
    Mutant(
        "a peer may have heard acks that were not said",
        "data/link/link.py",
        "max(self._heard_acks, min(acked, self._acked))",
        "max(self._heard_acks, acked)",
        test=f"{UNHEARD}::test_a_peer_cannot_have_heard_an_ack_that_was_not_said",
    ),
    Mutant(
        "a batch that its sender has kept is computed",
        "data/link/unheard.py",
        "self.confirmed = not self.kept",
        "self.confirmed = True",
        test=f"{UNHEARD}::test_a_batch_whose_sender_left_the_session_without_the_ack_is_dropped_and_comes_again",
    ),
    Mutant(
        "a batch that was kept is dropped although its sender has sent it again and heard the ack",
        "data/link/unheard.py",
        "            self._keepers.discard(peer)\n",
        "            pass\n",
        test=f"{UNHEARD}::test_a_batch_that_came_again_before_it_was_taken_is_computed_when_the_later_ack_is_heard",
    ),
    Mutant(
        "a batch that came another way is dropped if its first sender has kept it",
        "data/link/unheard.py",
        "        return self.last in self._keepers\n",
        "        return bool(self._keepers)\n",
        test=f"{UNHEARD}::test_a_batch_that_came_another_way_is_computed_although_its_first_sender_has_kept_it",
    ),
    Mutant(
        "word of a batch that one sender has kept never comes if the other one died",
        "data/link/unheard.py",
        "            if not (confirmation.frames or confirmation.confirmed):\n",
        "            if not (confirmation.frames or confirmation.confirmed or confirmation.kept):\n",
        test=f"{UNHEARD}::test_a_batch_that_one_sender_has_kept_is_dropped_when_the_other_one_cannot_tell",
    ),
    Mutant(
        "a link that takes frames back says that all of them were acked",
        "data/link/link.py",
        "self._left = (self._start, self._acks_heard)",
        "self._left = (self._start, self._numbered)",
        test=f"{UNHEARD}::test_a_link_that_takes_frames_back_says_which_acks_it_had_heard",
    ),
    Mutant(
        "the word of one of two senders is enough",
        "data/link/unheard.py",
        "            elif not confirmation.frames:\n",
        "            else:\n",
        test=f"{UNHEARD}::test_a_batch_that_came_two_ways_waits_for_both_senders",
    ),
    Mutant(
        "word that can never come is waited for for ever",
        "data/link/unheard.py",
        "                self._unknown.append((now + PATIENCE_US, confirmation))\n",
        "                pass\n",
        test=f"{UNHEARD}::test_nobody_waits_for_ever_for_word_of_a_peer_that_died_or_is_silent",
    ),
    Mutant(
        "a batch before a watermark here waits for no word",
        "data/fragment/pipeline.py",
        "not (step.waits is not None or step.feeds_memory)",
        "step.waits is None",
        test=f"{UNHEARD}::test_a_batch_that_came_two_ways_waits_for_both_senders",
    ),
    Mutant(
        "an origin that is left keeps its batches waiting for word",
        "data/fragment/pipeline.py",
        "                if name not in wanted:\n                    self.let_in(step, name, emitted, anyway=True)\n",
        "                if name not in wanted:\n",
        test=f"{UNHEARD}::test_a_batch_of_an_origin_that_nobody_waits_for_any_more_is_computed",
    ),
    Mutant(
        "a batch of an origin that is gone waits for word",
        "data/fragment/intake.py",
        "        confirmation = None if origin in self._gone else confirmation\n",
        "",
        test=f"{UNHEARD}::test_a_batch_of_an_origin_that_is_gone_waits_for_nobody",
    ),
)
