/* plmcore in C: models, sessions and text over opaque handles.
 *
 *   plm_model* model;
 *   if (plm_model_load("gpt2.plm", &model) != PLM_OK) { puts(plm_last_error()); return 1; }
 *
 * Every function that can fail returns a code; plm_last_error() is the message of the last failure on this
 * thread. Nothing else is thrown, printed or aborted. A handle is freed by the function of its name; NULL is
 * fine. What a handle gives (texts, arrays) lives as long as the handle. Texts are UTF-8 and end with 0. A
 * model may be used by many threads; a session, or anything made by one, by one thread at a time.
 *
 * Functions and fields are only ever added. PLM_ABI_VERSION counts the additions; a struct that may grow
 * begins with its size.
 */
#ifndef PLMCORE_PLMCORE_H
#define PLMCORE_PLMCORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLM_ABI_VERSION 1
#if defined(__GNUC__)
#define PLM_API __attribute__((visibility("default")))
#else
#define PLM_API
#endif

typedef enum plm_code {
  PLM_OK = 0,
  PLM_SHAPE = 1,  /* sizes or ranks that do not fit */
  PLM_VALUE = 2,  /* an argument outside its range, a name that there is not */
  PLM_INDEX = 3,  /* an id or a number outside its range */
  PLM_DTYPE = 4,
  PLM_DEVICE = 5,
  PLM_GRAPH = 6,
  PLM_TRACE = 7,
  PLM_FORMAT = 8,  /* a file that is damaged or of another format */
  PLM_MEMORY = 9,
  PLM_BUSY = 10,  /* a session that another thread is using */
  PLM_FILE = 11,  /* the system cannot open or read a file */
  PLM_OTHER = 12
} plm_code;

typedef enum plm_dtype {
  PLM_FLOAT64,
  PLM_FLOAT32,
  PLM_BFLOAT16,
  PLM_FLOAT16,
  PLM_INT64,
  PLM_INT32,
  PLM_INT8,
  PLM_UINT8,
  PLM_BOOL
} plm_dtype;

typedef struct plm_model plm_model;
typedef struct plm_session plm_session;
typedef struct plm_text plm_text;
typedef struct plm_rows plm_rows;
typedef struct plm_outputs plm_outputs;
typedef struct plm_labels plm_labels;
typedef struct plm_generated plm_generated;
typedef struct plm_string plm_string;

PLM_API int plm_abi_version(void);
PLM_API const char* plm_last_error(void);
PLM_API plm_code plm_set_num_threads(int threads);

/* ---- models ---- */

PLM_API plm_code plm_model_load(const char* path, plm_model** model);
PLM_API void plm_model_free(plm_model* model);
PLM_API plm_code plm_model_verify(const plm_model* model); /* compares the checksums of all weights */
PLM_API const char* plm_model_family(const plm_model* model);
PLM_API const char* plm_model_head(const plm_model* model);
PLM_API int plm_model_has(const plm_model* model, const char* entry);
PLM_API int64_t plm_model_id(const plm_model* model, const char* role); /* -1: there is none */

/* ---- rows of ids ---- */

PLM_API plm_code plm_rows_new(plm_rows** rows);
PLM_API plm_code plm_rows_add(plm_rows* rows, const int64_t* ids, const int64_t* types,
                              size_t n); /* types: or NULL */
PLM_API size_t plm_rows_count(const plm_rows* rows);
PLM_API plm_code plm_rows_get(const plm_rows* rows, size_t row, const int64_t** ids, const int64_t** types,
                              size_t* n);
PLM_API void plm_rows_free(plm_rows* rows);

/* ---- sessions ---- */

/* threads: of the pool, for its calls; 0: all. The model must outlive the session. */
PLM_API plm_code plm_session_new(const plm_model* model, int threads, plm_session** session);
PLM_API void plm_session_free(plm_session* session);

typedef struct plm_tensor {
  const char* name;
  plm_dtype dtype;
  int32_t rank; /* at most 8 */
  int64_t size[8];
  void* data;
} plm_tensor;

/* An entry point: inputs by name over the caller's memory. */
PLM_API plm_code plm_run(plm_session* session, const char* entry, const plm_tensor* inputs, size_t n,
                         plm_outputs** outputs);
/* A vector for each row, float32 [rows, width]: one output, "vectors". */
PLM_API plm_code plm_encode(plm_session* session, const plm_rows* rows, plm_outputs** outputs);
PLM_API size_t plm_outputs_count(const plm_outputs* outputs);
PLM_API plm_code plm_outputs_get(const plm_outputs* outputs, size_t number, plm_tensor* output);
PLM_API void plm_outputs_free(plm_outputs* outputs);

PLM_API plm_code plm_classify(plm_session* session, const plm_rows* rows, plm_labels** labels);
/* probability: of the label; of a regression the label is "" and this its value. */
PLM_API plm_code plm_labels_get(const plm_labels* labels, size_t row, const char** label,
                                double* probability);
PLM_API void plm_labels_free(plm_labels* labels);

typedef struct plm_options {
  size_t size; /* of this struct, set by plm_options_init */
  int64_t max_new_tokens, max_length, min_new_tokens, min_length; /* 0: not given */
  int64_t num_beams, num_return_sequences, top_k, no_repeat_ngram_size, seed;
  double temperature, top_p, typical_p, length_penalty, repetition_penalty;
  int32_t do_sample, early_stopping; /* early_stopping: 0 no, 1 yes, 2 never */
  int64_t eos; /* -1: those of the model */
} plm_options;

/* Told of each token as it comes; 0 ends the text of this prompt. */
typedef int (*plm_stream)(void* context, size_t prompt, int64_t token);

PLM_API plm_code plm_options_init(const plm_model* model, plm_options* options); /* what the file says */
/* options: or NULL for what the file says; stream: or NULL. */
PLM_API plm_code plm_generate(plm_session* session, const plm_rows* prompts, const plm_options* options,
                              plm_stream stream, void* context, plm_generated** generated);
PLM_API size_t plm_generated_count(const plm_generated* generated, size_t prompt);
/* The tokens after the prompt, the best sequence first. */
PLM_API plm_code plm_generated_get(const plm_generated* generated, size_t prompt, size_t sequence,
                                   const int64_t** tokens, size_t* n, double* score);
PLM_API void plm_generated_free(plm_generated* generated);

/* ---- text ---- */

PLM_API plm_code plm_text_new(const plm_model* model, plm_text** text);
PLM_API void plm_text_free(plm_text* text);
/* Adds a row: the ids of a text, or of a pair, with the special tokens of the model. pair: or NULL. */
PLM_API plm_code plm_text_encode(const plm_text* text, const char* first, const char* pair, plm_rows* rows);
PLM_API plm_code plm_text_decode(const plm_text* text, const int64_t* ids, size_t n, plm_string** string);
PLM_API const char* plm_string_get(const plm_string* string);
PLM_API void plm_string_free(plm_string* string);

#ifdef __cplusplus
}
#endif

#endif
