// SPDX-License-Identifier: Apache-2.0
// The native functions of calls.js. Without node_api.h, which not every node comes with: these
// functions of the Node-API are stable.
#include <stdlib.h>

typedef void *napi_env, *napi_value, *napi_callback_info;
typedef napi_value napi_callback(napi_env, napi_callback_info);
int napi_create_function(napi_env, const char *, size_t, napi_callback *, void *, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
int napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *, void **);
int napi_call_function(napi_env, napi_value, napi_value, size_t, const napi_value *, napi_value *);

napi_value js_calls_allocate(napi_env env, napi_callback_info info);
napi_value js_calls_back(napi_env env, napi_callback_info info);
napi_value napi_register_module_v1(napi_env env, napi_value exports);

napi_value js_calls_allocate(napi_env env, napi_callback_info info) {
    const size_t bytes = 100;
    (void)env;
    (void)info;
    void *volatile block = malloc(bytes);  // or a compiler leaves it out
    free(block);
    return NULL;
}

// Calls its argument.
napi_value js_calls_back(napi_env env, napi_callback_info info) {
    size_t count = 1;
    napi_value function = NULL, receiver = NULL, result = NULL;
    napi_get_cb_info(env, info, &count, &function, &receiver, NULL);
    napi_call_function(env, receiver, function, 0, NULL, &result);
    return result;
}

static void add(napi_env env, napi_value exports, const char *name, napi_callback *callback) {
    napi_value function = NULL;
    napi_create_function(env, name, (size_t)-1, callback, NULL, &function);
    napi_set_named_property(env, exports, name, function);
}

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
    add(env, exports, "allocate", js_calls_allocate);
    add(env, exports, "back", js_calls_back);
    return exports;
}
