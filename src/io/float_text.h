/* float_text.h - float32 numbers as text that is short and comes back bit for bit. */
#ifndef WF_IO_FLOAT_TEXT_H
#define WF_IO_FLOAT_TEXT_H

enum { WF__FLOAT_TEXT_BYTES = 32 };

/* As few digits (6 to 9) as give the value back, in any locale; "Infinity", "-Infinity", "nan".
 * NUL-ended. Returns the length. */
int wf__float_text(float value, char text[WF__FLOAT_TEXT_BYTES]);

#endif
