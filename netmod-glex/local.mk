# The MPICH netmod; filled in soon.
