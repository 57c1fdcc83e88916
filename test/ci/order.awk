# SPDX-License-Identifier: BSD-2-Clause
# order.awk - see order.sh.  Reads all files in one run: a table may serve several.

function complain(text) {
	print text
}

# "T-R1," -> "T-R1"; "" if it is no label
function label_of(word) {
	gsub(/[,;:]/, "", word)
	return word ~ /^[A-Z][A-Z0-9]*-[RA][0-9]+$/ ? word : ""
}

# The labels in text, into found[1..]; returns how many.
function labels_in(text, found,    n, word, i, count) {
	gsub(/[^A-Za-z0-9-]/, " ", text)
	n = split(text, word, " ")
	count = 0
	for (i = 1; i <= n; i++)
		if (label_of(word[i]) != "")
			found[++count] = word[i]
	return count
}

# A row of a table: label first, an order later, then partners.
function table_row(    n, word, i, label, order, partner) {
	n = split($0, word, " ")
	label = label_of(word[2])
	if (word[1] != "*" || label == "")
		return 0
	for (i = 3; i < n; i++)
		if (word[i] ~ /^(relaxed|acquire|release|acq_rel|seq_cst)$/ && label_of(word[i + 1]) != "")
			break
	if (i >= n)
		return 0
	if (label in declared)
		complain(FILENAME ":" FNR ": " label " is declared twice, see " declared[label])
	declared[label] = FILENAME ":" FNR
	order_of[label] = word[i]
	for (i++; i <= n && label_of(word[i]) != ""; i++) {
		partner = label_of(word[i])
		partners[label] = partners[label] " " partner
	}
	return 1
}

# An access that began at line `start` is complete: text holds its lines and the line above.
function finish_access(    n, found, i) {
	open = 0
	n = labels_in(text, found)
	for (i = 1; i <= n; i++) {
		used[found[i]] = file ":" start
		if (orders[found[i]] == "" || index(orders[found[i]], text) == 0)
			orders[found[i]] = orders[found[i]] text
	}
	if (n == 0 && text !~ /relaxed: *[a-z]/)
		complain(file ":" start ": an atomic access without a label")
}

FNR == 1 {
	if (open)
		finish_access()
	above = ""
}

/^ *\*/ && table_row() {
	next
}

# The line above counts if it is a comment, whose lines may be several.
{
	is_comment = $0 ~ /^[ \t]*(\/\*|\*)/ && $0 !~ /\*\/[ \t]*[^ \t]/
	code = $0
	gsub(/\/\*[^*]*\*+\//, "", code)
}

open {
	text = text " " $0
	if (code ~ /[;{]/ || FNR - start > 5)
		finish_access()
	above = ""
	next
}

!is_comment && code ~ /(_explicit|__atomic_[a-z_]+)[ \t]*\(/ && code !~ /^[ \t]*\*/ {
	open = 1
	start = FNR
	file = FILENAME
	text = above " " $0
	if (code ~ /[;{][ \t\\]*$/)
		finish_access()
	above = ""
	next
}

{
	above = is_comment ? above " " $0 : ""
}

END {
	if (open)
		finish_access()
	for (label in used)
		if (!(label in declared))
			complain(used[label] ": " label " is in no table")
	for (label in declared) {
		if (!(label in used))
			complain(declared[label] ": " label " is not used")
		else if (index(orders[label], "memory_order_" order_of[label]) == 0 &&
			 index(orders[label], "__ATOMIC_" toupper(order_of[label])) == 0)
			complain(used[label] ": " label " is " order_of[label] " in its table and not here")
		n = split(partners[label], partner, " ")
		for (i = 1; i <= n; i++) {
			if (!(partner[i] in declared))
				complain(declared[label] ": " label " pairs with " partner[i] ", which is in no table")
			else if (index(partners[partner[i]] " ", " " label " ") == 0)
				complain(declared[label] ": " label " pairs with " partner[i] ", which does not pair back")
		}
	}
}
