"""Programs: functions of tensors that run without Python."""
