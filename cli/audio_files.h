/* audio_files.h - recordings and acoustic models in place of scores and graphs. */
#ifndef WARPFST_CLI_AUDIO_FILES_H
#define WARPFST_CLI_AUDIO_FILES_H

/* Returns CLI_USAGE, after a message that names `warpfst transcribe`, if one of the files is a
 * recording, a folder of recordings, or an acoustic model; else -1. */
int refuse_audio(char **paths, int num_paths);

#endif
