// All layers in one include.
#ifndef WENGERT_NN_NN_H_
#define WENGERT_NN_NN_H_

#include "nn/attention_bias.h"
#include "nn/decoder.h"
#include "nn/decoder_layer.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/encoder.h"
#include "nn/encoder_layer.h"
#include "nn/forward_hook.h"
#include "nn/gated_mlp.h"
#include "nn/group_norm.h"
#include "nn/init.h"
#include "nn/key_value_cache.h"
#include "nn/layer_norm.h"
#include "nn/learned_positions.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/multi_head_attention.h"
#include "nn/parameter_store.h"
#include "nn/positional_encoding.h"
#include "nn/rms_norm.h"
#include "nn/sequential.h"
#include "nn/transformer.h"

#endif  // WENGERT_NN_NN_H_
