/* The sizes and places of what plmcore.h promises, line by line: abi.txt has those of the released ones. */
#include <plmcore/plmcore.h>
#include <stdio.h>

#define FIELD(type, field) \
  printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type*)0)->field))
#define VALUE(name) printf(#name " %d\n", (int)name)

int main(void) {
  VALUE(PLM_ABI_VERSION);
  VALUE(PLM_OK);
  VALUE(PLM_SHAPE);
  VALUE(PLM_VALUE);
  VALUE(PLM_INDEX);
  VALUE(PLM_DTYPE);
  VALUE(PLM_DEVICE);
  VALUE(PLM_GRAPH);
  VALUE(PLM_TRACE);
  VALUE(PLM_FORMAT);
  VALUE(PLM_MEMORY);
  VALUE(PLM_BUSY);
  VALUE(PLM_FILE);
  VALUE(PLM_OTHER);
  VALUE(PLM_FLOAT64);
  VALUE(PLM_FLOAT32);
  VALUE(PLM_BFLOAT16);
  VALUE(PLM_FLOAT16);
  VALUE(PLM_INT64);
  VALUE(PLM_INT32);
  VALUE(PLM_INT8);
  VALUE(PLM_UINT8);
  VALUE(PLM_BOOL);
  FIELD(plm_tensor, name);
  FIELD(plm_tensor, dtype);
  FIELD(plm_tensor, rank);
  FIELD(plm_tensor, size);
  FIELD(plm_tensor, data);
  FIELD(plm_options, size);
  FIELD(plm_options, max_new_tokens);
  FIELD(plm_options, min_length);
  FIELD(plm_options, num_beams);
  FIELD(plm_options, seed);
  FIELD(plm_options, temperature);
  FIELD(plm_options, repetition_penalty);
  FIELD(plm_options, do_sample);
  FIELD(plm_options, early_stopping);
  FIELD(plm_options, eos);
  return plm_abi_version() == PLM_ABI_VERSION ? 0 : 1;
}
