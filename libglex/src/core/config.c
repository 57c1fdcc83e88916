/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.c - the configuration as the layers above see it.
 */
#include <glex_ext.h>

#include "cfg/cfg.h"

glex_ret_t glex_config_uint(const char *name, uint64_t *value_p)
{
	if (!name || !value_p || !glexi_cfg_uint(name, value_p))
		return GLEX_INVALID_PARAM;
	return GLEX_SUCCESS;
}
