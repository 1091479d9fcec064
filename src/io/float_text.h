/* float_text.h - prints float32 numbers as short text that is read back bit for bit. */
#ifndef WF_IO_FLOAT_TEXT_H
#define WF_IO_FLOAT_TEXT_H

enum { WF__FLOAT_TEXT_BYTES = 32 };

/* Writes the fewest digits (6 to 9) that are read back as the same value, in any locale, or
 * "Infinity", "-Infinity", "nan". The text ends with NUL. Returns its length. */
int wf__float_text(float value, char text[WF__FLOAT_TEXT_BYTES]);

#endif
