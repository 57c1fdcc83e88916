#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# order.sh - every atomic access says what it is ordered with.
#
# A file that shares memory opens with a table,
#
#	label       access                    order     pairs     says
#	RING-R1     NIC   slot.seq = n+1      release   RING-A1   the slot's body is complete
#
# and each access with an explicit order carries, on one of its lines or the
# line above, a label of some table, or `relaxed: why nothing is ordered by it`.
# A label is declared once and used; its partners are declared and name it back
# (A is partner of R); its order is among those of the access.  Where memory that
# is not ours is accessed, the __atomic builtins stand for the missing _Atomic.
# Accesses without an explicit order, fences and volatile are not for us (except
# glex.h, whose events are volatile on the hardware).  test/ is exempt.
# shellcheck source=test/ci/lib.sh
. "$(dirname "$0")/lib.sh"

sources() {
	files c h | grep -v '^test/'
}

check() {
	# shellcheck disable=SC2046 # no blanks in our file names
	set -- $(sources)
	[ $# != 0 ] || return 0
	awk -f "$tree/test/ci/order.awk" "$@"
	for file in "$@"; do
		[ "$file" != libglex/include/glex.h ] || continue
		strip_c "$file" | grep -nE \
			-e '\<atomic_(load|store|exchange|compare_exchange_(strong|weak)|fetch_[a-z]+)[[:space:]]*\(' \
			-e '\<atomic_(thread|signal)_fence\>' -e '\<__(sync_[a-z_]+|atomic_(thread|signal)_fence)[[:space:]]*\(' -e '\<volatile\>' |
			grep -vE -e '__asm__ +(__)?volatile' | sed "s|^|$file:|; s|\$|: not this way|"
	done
}

guard "every atomic access is labelled and every label has its partner" check

table() {
	cat <<END
/*
 * label    access          order     pairs     says
 * T-R1     a  flag = 1     release   T-A1      the body is complete
 * T-A1     b  load flag    acquire   $1      the body may be read
$2 */
END
}
body='atomic_store_explicit(&flag, 1, memory_order_release); /* T-R1 */
/* T-A1 */
x = atomic_load_explicit(&flag, memory_order_acquire);'

{
	table T-R1
	echo "$body"
} | given
must_accept "a labelled pair" emulator/nic/x.h
{
	table T-R1
	echo "$body"
	echo 'x = atomic_load_explicit(&flag, memory_order_acquire);'
} | given
must_complain "an access without a label" emulator/nic/x.h
{
	table T-R1
	echo "$body"
	echo 'x = atomic_load_explicit(&flag, memory_order_relaxed); /* relaxed: only a hint */'
} | given
must_accept "a relaxed access with a reason" emulator/nic/x.h
{
	table T-R1
	echo "$body"
	echo 'x = atomic_load_explicit(&flag, memory_order_relaxed); /* relaxed: */'
} | given
must_complain "a relaxed access without a reason" emulator/nic/x.h
{
	table T-R1
	echo "$body" | sed 's/T-A1/T-A9/'
} | given
must_complain "a label that no table has" emulator/nic/x.h
{
	table T-R1
	echo "$body" | head -n 1
} | given
must_complain "a label that nobody uses" emulator/nic/x.h
{
	table T-R7
	echo "$body"
} | given
must_complain "a partner that does not exist" emulator/nic/x.h
{
	table T-R2 ' * T-R2     a  flag = 2     release   T-A2      more
 * T-A2     b  load flag    acquire   T-R2      more
'
	echo "$body"
	echo "$body" | sed 's/1 /2 /'
} | given
must_complain "a partner that names another" emulator/nic/x.h
{
	table T-R1 ' * T-R1     a  flag = 2     release   T-A1      again
'
	echo "$body"
} | given
must_complain "a label declared twice" emulator/nic/x.h
{
	table T-R1
	echo "$body" | sed 's/order_release/order_relaxed/'
} | given
must_complain "an order other than the table's" emulator/nic/x.h
{
	table T-R1
	echo "$body" | sed 's/atomic_store_explicit/__atomic_store_n/; s/memory_order_release/__ATOMIC_RELEASE/'
} | given
must_accept "a labelled builtin" emulator/nic/x.h
echo '__atomic_store_n(p, 1, __ATOMIC_RELEASE);' | given
must_complain "a builtin without a label" emulator/nic/x.h
echo 'x = __sync_fetch_and_add(p, 1);' | given
must_complain "an old builtin" emulator/nic/x.h
echo 'x = atomic_load(&flag);' | given
must_complain "an access without an explicit order" emulator/nic/x.h
echo 'atomic_thread_fence(memory_order_release); /* T-R1 */' | given
must_complain "a bare fence" emulator/nic/x.h
echo 'static volatile int x;' | given
must_complain "volatile" libglex/src/core/x.c
echo 'static inline void f(void) { __asm__ volatile("pause"); } /* no volatile */' | given
must_accept "volatile in assembly" libglex/src/core/x.c
finish
