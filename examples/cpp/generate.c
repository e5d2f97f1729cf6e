/* Text from a model file, in plain C.
 *   generate gpt2.plm "Once upon a time"
 */
#include <plmcore/plmcore.h>
#include <stdio.h>

static int failed(void) {
  fprintf(stderr, "%s\n", plm_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: generate MODEL.plm TEXT\n"), 2;
  plm_model* model = NULL;
  plm_text* text = NULL;
  plm_session* session = NULL;
  plm_rows* prompts = NULL;
  plm_generated* found = NULL;
  plm_string* made = NULL;
  plm_options options;
  const int64_t* tokens;
  size_t n;
  double score;

  if (plm_model_load(argv[1], &model) || plm_text_new(model, &text) || plm_session_new(model, 0, &session))
    return failed();
  if (plm_rows_new(&prompts) || plm_text_encode(text, argv[2], NULL, prompts)) return failed();
  if (plm_options_init(model, &options)) return failed();
  options.max_new_tokens = 12;
  options.num_beams = 4;
  if (plm_generate(session, prompts, &options, NULL, NULL, &found)) return failed();
  if (plm_generated_get(found, 0, 0, &tokens, &n, &score) || plm_text_decode(text, tokens, n, &made))
    return failed();
  printf("%s%s\n%zu tokens, score %.3f\n", argv[2], plm_string_get(made), n, score);

  plm_string_free(made);
  plm_generated_free(found);
  plm_rows_free(prompts);
  plm_session_free(session);
  plm_text_free(text);
  plm_model_free(model);
  return 0;
}
