#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# san-cc.sh - gcc for an MPICH whose netmod is watched by the address and the undefined-
# behaviour sanitizer: what of MPICH itself is compiled is compiled as ever, but what is
# linked gets their libraries, so that every malloc and memcpy of it is watched too.  (The
# netmod is compiled as part of none.c: see netmod-glex/install-into.sh.)
#
#   ./configure --with-preset=san --prefix=DIR && make install      # libglex, watched
#   CC=$PWD/test/mpich/san-cc.sh netmod-glex/build-mpich.sh --prefix DIR
#   ASAN_OPTIONS=detect_leaks=0 test/mpich/run-suite.sh --prefix DIR --netmods glex --dirs pt2pt,coll
#
# An MPICH of its own, and programs of its own, so a GLEX_CACHE_DIR of its own spares
# the usual ones.  MPICH leaves some things to the end of the process: no leaks.
case " $* " in
*"/netmod/none/none.c "*) set -- "$@" -g -fno-omit-frame-pointer -fsanitize=address,undefined ;;
*" -c "* | *" -E "* | *" -S "* | *" --version "*) ;;
*) set -- "$@" -fsanitize=address,undefined ;;
esac
exec gcc "$@"
