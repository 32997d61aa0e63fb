for (const curve of data.curves) curve.values = curve.values.map(Number);
summary(data);
curvesSection(data.curves);
attentionSection(data.attention);
samplesSection(data.samples);
parametersSection(data.parameters);
configSection(data.config);
