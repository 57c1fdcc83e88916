# AX_LINKER_VERSION_SCRIPT: HAVE_VERSION_SCRIPT if the linker takes one.
AC_DEFUN([AX_LINKER_VERSION_SCRIPT], [
  AC_CACHE_CHECK([whether the linker takes a version script], [glex_cv_version_script], [
    echo 'V { global: main; local: *; };' >conftest.map
    glex_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [glex_cv_version_script=yes], [glex_cv_version_script=no])
    LDFLAGS=$glex_save_LDFLAGS
    rm -f conftest.map])
  AM_CONDITIONAL([HAVE_VERSION_SCRIPT], [test "x$glex_cv_version_script" = xyes])
])
