# SPDX-License-Identifier: BSD-2-Clause
# strip.awk - C source without comments and without what is between quotes.
BEGIN {
	state = "code"
}

{
	out = ""
	n = length($0)
	for (i = 1; i <= n; i++) {
		c = substr($0, i, 1)
		two = substr($0, i, 2)
		if (state == "comment") {
			if (two == "*/") {
				state = "code"
				i++
			}
		} else if (state != "code") {
			if (c == "\\")
				i++
			else if (c == state) {
				state = "code"
				out = out c
			}
		} else if (two == "/*") {
			state = "comment"
			i++
		} else if (two == "//") {
			break
		} else {
			if (c == "\"" || c == "'")
				state = c
			out = out c
		}
	}
	if (state != "comment")
		state = "code"
	print out
}
